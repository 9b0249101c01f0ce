#include "props/train/kept_checkpoints.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

#include "model/check.h"
#include "sim/fingerprint.h"

namespace zeroproof::train {
namespace {

constexpr std::size_t kLoadedMax = 64;

std::uint64_t bits(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

void add(StateBytes& bytes, const Shape& sizes) {
  bytes.add(sizes.size());
  for (const std::int64_t size : sizes) bytes.add(size);
}

void add(StateBytes& bytes, const std::vector<FullTensor>& tensors) {
  bytes.add(tensors.size());
  for (const FullTensor& tensor : tensors) {
    bytes.add(tensor.name);
    add(bytes, tensor.sizes);
    for (const double value : tensor.values) bytes.add(bits(value));
  }
}

void add(StateBytes& bytes, const TrainingState& state) {
  add(bytes, state.parameters);
  add(bytes, state.optimizer_state);
  bytes.add(state.groups.size());
  for (const ParameterGroup& group : state.groups) {
    bytes.add(group.parameters.size());
    for (const std::string& name : group.parameters) bytes.add(name);
    for (const auto& [name, value] : group.hyper_parameters) bytes.add(name).add(bits(value));
  }
  bytes.add(bits(state.loss_scaler.scale)).add(state.loss_scaler.iteration);
  bytes.add(state.loss_scaler.last_overflow).add(state.loss_scaler.hysteresis);
  bytes.add(state.loss_scaler.growth_tracker);
  bytes.add(state.counters.micro_steps).add(state.counters.global_steps);
  bytes.add(state.counters.skipped_steps).add(state.counters.global_samples);
}

void add(StateBytes& bytes, const std::vector<TensorTarget>& targets) {
  bytes.add(targets.size());
  for (const TensorTarget& target : targets) {
    bytes.add(target.name);
    add(bytes, target.sizes);
  }
}

Fingerprint key_of(const TrainingState& state, const LoadOptions& options) {
  StateBytes bytes;
  add(bytes, state);
  bytes.add(options.tag);
  add(bytes, options.targets->parameters);
  add(bytes, options.targets->optimizer_state);
  bytes.add(options.groups.size());
  for (const auto& group : options.groups) {
    bytes.add(group.size());
    for (const std::string& name : group) bytes.add(name);
  }
  return bytes.fingerprint();
}

}  // namespace

const TrainingState* LoadedStates::find(const Fingerprint& key) const {
  const auto at = states_.find(key);
  return at == states_.end() ? nullptr : &at->second;
}

void LoadedStates::add(const Fingerprint& key, const TrainingState& loaded) {
  if (states_.size() >= kLoadedMax) states_.clear();
  states_.emplace(key, loaded);
}

Result<void> KeptCheckpoints::save(TrainingState state, const std::string& folder,
                                   const std::string& tag) {
  ZP_CHECK(!tag.empty(), "a kept checkpoint has a tag");
  ZP_CHECK(state.partition_rules.empty(), "a kept checkpoint is whole");
  states_[{folder, tag}] = std::move(state);
  return {};
}

Result<TrainingState> KeptCheckpoints::load(const std::string& folder, const LoadOptions& options) {
  ZP_CHECK(options.targets && !options.tensor_parallel && !options.on_warning,
           "a kept checkpoint is loaded by the engine that saved it");
  const auto at = states_.find({folder, options.tag});
  if (at == states_.end())
    return fail(ErrorCode::unreadable, fmt::format("{}: has no '{}'", folder, options.tag));
  const Fingerprint key = key_of(at->second, options);
  if (const TrainingState* const known = loaded_.find(key)) return *known;
  KeptFiles files;
  if (auto saved = save_checkpoint(at->second, files, folder, {.tag = options.tag}); !saved)
    return tl::unexpected(saved.error());
  auto loaded = load_checkpoint(files, folder, options);
  if (loaded) loaded_.add(key, *loaded);
  return loaded;
}

Fingerprint KeptCheckpoints::fingerprint() const {
  StateBytes bytes;
  for (const auto& [place, state] : states_) {
    bytes.add(place.first).add(place.second);
    add(bytes, state);
  }
  return bytes.fingerprint();
}

}  // namespace zeroproof::train
