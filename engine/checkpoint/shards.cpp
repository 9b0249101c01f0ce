#include "engine/checkpoint/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "engine/checkpoint/state_check.h"
#include "engine/checkpoint/stored_files.h"
#include "engine/checkpoint/tensor_file.h"
#include "engine/checkpoint/tensor_parallel.h"

namespace zeroproof {
namespace {

Manifest shards_head(const ShardState& state, const SaveOptions& options) {
  Manifest head = head_of(state.head, options);
  head.data_size = state.data.size;
  return head;
}

class ShardSaver final : public CheckpointFolder {
 public:
  ShardSaver(const ShardState& state, const ShardValues& values, FileSystem& files,
             const std::string& folder, const SaveOptions& options)
      : CheckpointFolder(files, folder, options, shards_head(state, options),
                         shard_part_files(options.place.tensor.size, state.data.size)),
        state_(state),
        values_(values) {}

 private:
  Result<void> write_part() override {
    const int rank = state_.data.rank;
    const ParallelRank& tensor = options_.place.tensor;
    if (auto made = make_folder(folder_of(block_file(rank, tensor, 0))); !made) return made;
    part_.steps = state_.steps;
    for (const StateShard& shard : state_.shards) {
      const std::int64_t elements = shard.is_saved ? shard.values.elements : 0;
      for (std::int64_t from = 0; from < elements; from += kBlockElements)
        if (auto written = write_block(shard, from, std::min(kBlockElements, elements - from));
            !written)
          return written;
    }
    return write_part_record(shard_part_file(rank, tensor), shard_part_text(part_));
  }

  Result<void> write_block(const StateShard& shard, std::int64_t from, std::int64_t elements) {
    const FullTensor tensor{shard.parameter + "/" + shard.key,
                            {elements},
                            values_.read(shard.values.part(from, elements))};
    const std::string bytes = tensor_bytes(tensor, options_.dtype);
    const std::size_t number = part_.blocks.size();
    part_.blocks.push_back({.parameter = shard.parameter,
                            .key = shard.key,
                            .sizes = shard.sizes,
                            .begin = shard.begin + from,
                            .elements = elements,
                            .file = record_of(bytes)});
    return write(block_file(state_.data.rank, options_.place.tensor, number), bytes);
  }

  const ShardState& state_;
  const ShardValues& values_;
  ShardPart part_;
};

Result<Manifest> read_shards_manifest(FileSystem& files, const std::string& path,
                                      const ParallelRank& tensor) {
  const std::string at = fmt::format("{}/{}", path, kManifestFile);
  auto manifest = read_manifest_at(files, path);
  if (!manifest) return manifest;
  if (manifest->data_size == 0)
    return fail(ErrorCode::usage,
                fmt::format("{}: has whole tensors and no shards of ranks: load it with the "
                            "universal layout",
                            at));
  if (manifest->tensor_size != tensor.size)
    return fail(ErrorCode::usage,
                fmt::format("{}: was saved by {} tensor-parallel ranks and not {}: load it with as "
                            "many, and save it in the universal layout",
                            at, manifest->tensor_size, tensor.size));
  return manifest;
}

}  // namespace

Result<void> save_shards(const ShardState& state, const ShardValues& values, FileSystem& files,
                         const std::string& folder, const SaveOptions& options) {
  const bool is_leader = state.data.rank == 0 && options.place.tensor.rank == 0;
  return ShardSaver(state, values, files, folder, options)
      .save(is_leader, check_saved_state(state.head, options));
}

Result<ShardLoad> ShardLoad::open(FileSystem& files, const std::string& folder,
                                  const std::string& tag, const ParallelRank& tensor) {
  const auto path = find_checkpoint(files, folder, tag);
  if (!path) return tl::unexpected(path.error());
  const auto manifest = read_shards_manifest(files, *path, tensor);
  if (!manifest) return tl::unexpected(manifest.error());
  auto index = read_shard_index(files, {*path, *manifest}, tensor);
  if (!index) return tl::unexpected(index.error());
  ShardLoad load;
  load.files_ = &files;
  load.path_ = *path;
  load.head_ = {.groups = manifest->groups,
                .partition_rules = manifest->rules,
                .loss_scaler = manifest->loss_scaler,
                .counters = manifest->counters,
                .scheduler = manifest->scheduler};
  load.index_ = std::move(*index);
  return load;
}

Result<void> ShardLoad::check_names(const std::vector<StateShard>& shards) const {
  SavedNames saved;
  LoadTargets targets;
  const auto is_weight = [](const std::string& key) { return key == kWeightKey; };
  for (const auto& [key, blocks] : index_.states())
    (is_weight(key.second) ? saved.parameters : saved.optimizer_state)
        .insert(is_weight(key.second) ? key.first : key.first + "/" + key.second);
  for (const StateShard& shard : shards) {
    if (numel(shard.sizes) == 0) continue;  // it has no block
    (is_weight(shard.key) ? targets.parameters : targets.optimizer_state)
        .push_back({is_weight(shard.key) ? shard.parameter : shard.parameter + "/" + shard.key,
                    shard.sizes});
  }
  return zeroproof::check_names(saved, targets, path_);
}

Result<void> ShardLoad::check(const std::vector<StateShard>& shards,
                              const std::vector<std::vector<std::string>>& groups) const {
  if (auto right = check_names(shards); !right) return right;
  if (auto right = check_groups(head_.groups.size(), groups.size(), path_); !right) return right;
  for (const StateShard& shard : shards) {
    if (numel(shard.sizes) == 0) continue;
    const ShardIndex::Key key{shard.parameter, shard.key};
    const Shape& saved = index_.states().at(key).front().block.sizes;
    if (saved != shard.sizes)
      return fail(
          ErrorCode::usage,
          fmt::format("{}: '{}/{}' has shape {} where this engine has {}; load it into the "
                      "model that it was saved from",
                      path_, key.first, key.second, shape_text(saved), shape_text(shard.sizes)));
    for (const ShardIndex::Stored* stored :
         index_.blocks_of(key, shard.begin, shard.values.elements))
      if (auto block = read_block(*files_, path_, *stored); !block)
        return tl::unexpected(block.error());
  }
  return {};
}

Result<void> ShardLoad::apply(const std::vector<StateShard>& shards,
                              const ShardValues& values) const {
  for (const StateShard& shard : shards) {
    const std::int64_t end = shard.begin + shard.values.elements;
    for (const ShardIndex::Stored* stored :
         index_.blocks_of({shard.parameter, shard.key}, shard.begin, shard.values.elements)) {
      auto block = read_block(*files_, path_, *stored);
      if (!block) return tl::unexpected(block.error());
      const ShardBlock& of = stored->block;
      const std::int64_t from = std::max(shard.begin, of.begin);
      const std::int64_t to = std::min(end, of.begin + of.elements);
      const auto first = block->begin() + (from - of.begin);
      values.write(shard.values.part(from - shard.begin, to - from), {first, first + (to - from)});
    }
  }
  return {};
}

}  // namespace zeroproof
