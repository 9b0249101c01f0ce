#include "props/train/checkpoint_judge.h"

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>
#include <vector>

#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"

namespace zeroproof::train {
namespace {

constexpr const char* kHalfParameter = "/zero/half";

using Groups = std::vector<std::set<std::string>>;

// What the user lists, in turns to the groups, and of that what is trained; the last is not empty.
Groups groups_of(const nn::Module& module, const CaseSpec& spec) {
  const auto groups = static_cast<std::size_t>(spec.groups);
  Groups names(groups);
  TensorList known;
  for (const nn::NamedParameter& named : module.named_parameters()) {
    const auto is_same = [&](const Tensor& tensor) { return tensor.is_same(named.tensor); };
    const bool is_trained = named.tensor.requires_grad() && !is_left_out(spec, named.name);
    if (!is_trained && spec.lists_frozen == 0) continue;
    if (std::ranges::any_of(known, is_same)) continue;
    if (is_trained) names[known.size() % groups].insert(named.name);
    known.push_back(named.tensor);
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

// In whatever order: each stage has its own.
bool is_same(std::vector<FullTensor> a, std::vector<FullTensor> b) {
  std::ranges::sort(a, {}, &FullTensor::name);
  std::ranges::sort(b, {}, &FullTensor::name);
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  return std::ranges::equal(a, b, [&](const FullTensor& one, const FullTensor& other) {
    return one.name == other.name && one.sizes == other.sizes &&
           std::ranges::equal(one.values, other.values, {}, bits, bits);
  });
}

}  // namespace

bool is_state_of(const TrainingState& state, const Engine& engine, const CaseSpec& spec) {
  Groups saved;
  const std::vector<double> rates = engine.learning_rates();
  for (const ParameterGroup& group : state.groups) {
    const auto rate = group.hyper_parameters.find("lr");
    if (rate == group.hyper_parameters.end() || rate->second != rates.at(saved.size()))
      return false;
    saved.emplace_back(group.parameters.begin(), group.parameters.end());
    if (saved.back().size() != group.parameters.size()) return false;
  }
  const TrainingCounters counters{.micro_steps = engine.micro_steps(),
                                  .global_steps = engine.global_steps(),
                                  .skipped_steps = engine.skipped_steps(),
                                  .global_samples = engine.global_samples()};
  return saved == groups_of(engine.module(), spec) && state.counters == counters &&
         state.loss_scaler.scale == engine.loss_scale() &&
         state.scheduler.has_value() == engine.config().scheduler.has_value();
}

bool is_same_state(const TrainingState& a, const TrainingState& b, bool has_same_scaler) {
  return is_same(a.parameters, b.parameters) && is_same(a.optimizer_state, b.optimizer_state) &&
         a.groups == b.groups && a.counters == b.counters && a.scheduler == b.scheduler &&
         (!has_same_scaler || a.loss_scaler == b.loss_scaler);
}

bool has_one_of(FileSystem& files, const std::string& folder, const std::string& tag) {
  const auto path = find_checkpoint(files, folder, tag);
  if (!path) return false;
  const auto newest = checkpoint_name(path->substr(folder.size() + 1));
  const auto entries = files.list(folder);
  if (!newest || !entries) return false;
  return std::ranges::count_if(*entries, [&](const std::string& entry) {
           const auto name = checkpoint_name(entry);
           return name && name->tag == newest->tag;
         }) == 1;
}

void leave_half(FileSystem& files, const std::string& folder) {
  const std::string half = folder + "/" + std::string(kSavingFolder) + kHalfParameter;
  (void)files.make_folders(half);
  (void)write_synced(files, half + "/fp32.tensor", "half");
  (void)write_synced(files, folder + "/" + std::string(kLatestFile) + ".1.tmp", "half");
}

bool has_leftovers(FileSystem& files, const std::string& folder, const std::string& tag) {
  const auto newest = find_checkpoint(files, folder, tag);
  if (newest && files.exists(*newest + kHalfParameter)) return true;
  const std::string pointer = std::string(kLatestFile) + ".";
  const auto entries = files.list(folder).value_or(std::vector<std::string>{});
  return std::ranges::any_of(entries, [&](const std::string& entry) {
    return entry == kSavingFolder || entry.starts_with(pointer);
  });
}

}  // namespace zeroproof::train
