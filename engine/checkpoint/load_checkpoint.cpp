#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/state_check.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/checkpoint/tensor_parallel.h"

namespace zeroproof {
namespace {

using TensorKey = std::pair<std::string, std::string>;  // parameter, state

Result<std::string> read_file(FileSystem& files, const std::string& path, std::uint64_t bytes_max) {
  auto bytes = files.read(path, bytes_max);
  if (bytes) return std::move(*bytes);
  return fail(ErrorCode::unreadable,
              fmt::format("{}: cannot be read: {}; restore it from a copy or load another "
                          "checkpoint by its tag",
                          path, bytes.error().reason));
}

Result<std::string> read_recorded(FileSystem& files, const std::string& path,
                                  const FileRecord& record) {
  auto bytes = read_file(files, path, record.bytes);
  if (!bytes) return bytes;
  if (bytes->size() != record.bytes) {
    return damaged(path, fmt::format("it has {} of {} bytes", bytes->size(), record.bytes));
  }
  if (record_of(*bytes) != record) return damaged(path, "its checksum does not match");
  return bytes;
}

// One rank's part: where its files are, and what they must be.
struct Part {
  ParallelPlace place;
  std::string path;  // of its manifest
  std::map<TensorKey, FileRecord> tensors;
};

class Loader {
 public:
  Loader(FileSystem& files, std::string path, const LoadOptions& options)
      : files_(files),
        path_(std::move(path)),
        options_(options),
        place_{options.tensor_parallel.value_or(ParallelRank{}), options.expert_parallel} {}

  Result<TrainingState> load() {
    if (auto read = read_manifests(); !read) return tl::unexpected(read.error());
    if (auto right = check_before_tensors(); !right) return tl::unexpected(right.error());
    TrainingState state{.groups = manifest_.groups,
                        .partition_rules = manifest_.rules,
                        .loss_scaler = manifest_.loss_scaler,
                        .counters = manifest_.counters,
                        .scheduler = manifest_.scheduler};
    for (const StoredTensor& record : order_) {
      if (auto added = add_tensor(record, state); !added) return tl::unexpected(added.error());
    }
    auto right = check_steps(state, groups(), path_);
    if (!right) return tl::unexpected(right.error());
    return state;
  }

 private:
  Result<void> read_manifests() {
    const std::string path = fmt::format("{}/{}", path_, kManifestFile);
    auto text = read_file(files_, path, kManifestBytesMax);
    if (!text) return tl::unexpected(text.error());
    auto manifest = parse_manifest(*text, path);
    if (!manifest) return tl::unexpected(manifest.error());
    manifest_ = std::move(*manifest);
    if (manifest_.data_size > 0)
      return fail(ErrorCode::usage,
                  fmt::format("{}: has shards of {} ranks and no whole tensors: load it with the "
                              "layout of shards",
                              path, manifest_.data_size));
    const auto places = places_of(manifest_.tensor_size, manifest_.expert_size);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (auto read = read_part(places[i], manifest_.parts[i]); !read) return read;
    }
    return {};
  }

  // The first part has every tensor, in the order of the state.
  Result<void> read_part(const ParallelPlace& place, const FileRecord& record) {
    Part part{.place = place, .path = path_ + "/" + part_file(place), .tensors = {}};
    const auto text = read_recorded(files_, part.path, record);
    if (!text) return tl::unexpected(text.error());
    const auto tensors = parse_part(*text, part.path);
    if (!tensors) return tl::unexpected(tensors.error());
    for (const StoredTensor& tensor : *tensors) {
      part.tensors.emplace(TensorKey{tensor.parameter, tensor.key}, tensor.file);
    }
    if (parts_.empty()) order_ = *tensors;
    parts_.push_back(std::move(part));
    return {};
  }

  Result<void> check_before_tensors() {
    SavedNames saved;
    for (const StoredTensor& record : order_) {
      (is_weight(record) ? saved.parameters : saved.optimizer_state).insert(name_of(record));
    }
    if (options_.targets) {
      if (auto right = check_names(saved, *options_.targets, path_); !right) return right;
      put_in_order_of_targets();
    }
    return check_groups(manifest_.groups.size(), options_.groups.size(), path_);
  }

  static bool is_weight(const StoredTensor& record) { return record.key == kWeightKey; }
  static std::string name_of(const StoredTensor& record) {
    return is_weight(record) ? record.parameter : record.parameter + "/" + record.key;
  }

  void put_in_order_of_targets() {
    std::map<std::string, StoredTensor> weights;
    std::map<std::string, StoredTensor> states;
    for (StoredTensor& record : order_) {
      auto& records = is_weight(record) ? weights : states;
      const std::string name = name_of(record);
      records.emplace(name, std::move(record));
    }
    order_.clear();
    for (const TensorTarget& target : options_.targets->parameters) {
      order_.push_back(weights.at(target.name));
      weight_targets_[target.name] = target.sizes;
    }
    for (const TensorTarget& target : options_.targets->optimizer_state) {
      order_.push_back(states.at(target.name));
      state_targets_[target.name] = target.sizes;
    }
  }

  std::optional<Shape> target_of(const StoredTensor& record) const {
    if (!options_.targets) return std::nullopt;
    return (is_weight(record) ? weight_targets_ : state_targets_).at(name_of(record));
  }

  Result<void> add_tensor(const StoredTensor& record, TrainingState& state) {
    const PartitionRule rule = rule_of(manifest_.rules, record.parameter, record.key);
    auto whole = join(record, rule);
    if (!whole) return tl::unexpected(whole.error());
    std::optional<Shape> target = target_of(record);
    auto part = cut_tensor(std::move(*whole), rule, place_, target);
    if (!part) return does_not_fit(record, part.error());
    if (!is_weight(record)) {
      state.optimizer_state.push_back(std::move(part->tensor));
      return {};
    }
    if (part->rule != PartitionRule()) state.partition_rules[record.parameter] = part->rule;
    state.parameters.push_back(std::move(part->tensor));
    return {};
  }

  // The whole tensor from the parts of all ranks that wrote one.
  Result<FullTensor> join(const StoredTensor& record, const PartitionRule& rule) {
    const int blocks_wanted = rule.experts > 0 ? manifest_.expert_size : 1;
    const bool is_cut = rule.kind != PartitionKind::replicated;
    std::vector<FullTensor> blocks;
    for (int expert = 0; expert < blocks_wanted; ++expert) {
      std::vector<FullTensor> parts;
      for (int tensor = 0; tensor < (is_cut ? manifest_.tensor_size : 1); ++tensor) {
        const int index = expert * manifest_.tensor_size + tensor;
        auto part = read_tensor(parts_[static_cast<std::size_t>(index)], record);
        if (!part) return part;
        parts.push_back(std::move(*part));
      }
      auto block = join_tensor_parts(parts, rule);
      if (!block) return does_not_fit(record, block.error());
      blocks.push_back(std::move(*block));
    }
    auto whole = join_expert_blocks(blocks);
    if (!whole) return does_not_fit(record, whole.error());
    return whole;
  }

  Result<FullTensor> read_tensor(const Part& part, const StoredTensor& record) {
    const auto found = part.tensors.find({record.parameter, record.key});
    if (found == part.tensors.end()) {
      return damaged(part.path, fmt::format("it lacks '{}'", name_of(record)));
    }
    const std::string path = path_ + "/" + tensor_file(record.parameter, record.key, part.place);
    const auto bytes = read_recorded(files_, path, found->second);
    if (!bytes) return tl::unexpected(bytes.error());
    auto tensor = parse_tensor(*bytes, path);
    if (tensor && tensor->name != name_of(record)) {
      return damaged(path, fmt::format("it holds '{}'", tensor->name));
    }
    return tensor;
  }

  tl::unexpected<Error> does_not_fit(const StoredTensor& record, const Error& error) const {
    return fail(ErrorCode::usage,
                fmt::format("{}/{}: '{}' does not fit: {}", path_,
                            parameter_folder(record.parameter), name_of(record), error.text));
  }

  std::vector<std::vector<std::string>> groups() const {
    if (!options_.groups.empty()) return options_.groups;
    std::vector<std::vector<std::string>> saved;
    for (const ParameterGroup& group : manifest_.groups) saved.push_back(group.parameters);
    return saved;
  }

  FileSystem& files_;
  std::string path_;
  const LoadOptions& options_;
  ParallelPlace place_;
  Manifest manifest_;
  std::vector<Part> parts_;
  std::vector<StoredTensor> order_;
  std::map<std::string, Shape> weight_targets_;
  std::map<std::string, Shape> state_targets_;
};

Result<void> check_place(const LoadOptions& options) {
  for (const ParallelRank at :
       {options.tensor_parallel.value_or(ParallelRank{}), options.expert_parallel}) {
    if (at.rank >= 0 && at.rank < at.size) continue;
    return fail(ErrorCode::usage,
                fmt::format("a checkpoint cannot be loaded as rank {} of {}", at.rank, at.size));
  }
  return {};
}

}  // namespace

LoadTargets targets_of(const TrainingState& state) {
  LoadTargets targets;
  for (const FullTensor& tensor : state.parameters) {
    targets.parameters.push_back({tensor.name, tensor.sizes});
  }
  for (const FullTensor& tensor : state.optimizer_state) {
    targets.optimizer_state.push_back({tensor.name, tensor.sizes});
  }
  return targets;
}

Result<TrainingState> load_checkpoint(FileSystem& files, const std::string& folder,
                                      const LoadOptions& options) {
  if (auto right = check_place(options); !right) return tl::unexpected(right.error());
  if (!options.tensor_parallel && options.on_warning) {
    options.on_warning(fmt::format(
        "{}: no tensor-parallel group was given: loading as the only rank of one", folder));
  }
  const auto path = find_checkpoint(files, folder, options.tag);
  if (!path) return tl::unexpected(path.error());
  return Loader(files, *path, options).load();
}

}  // namespace zeroproof
