#include "engine/checkpoint/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/find_checkpoint.h"
#include "engine/checkpoint/pending_save.h"
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

using EncodedBlock = ShardSnapshot::Block;
using TakeBlock = std::function<Result<void>(EncodedBlock)>;
// Gives all blocks of a rank, in their order, until one is not taken.
using BlockSource = std::function<Result<void>(const TakeBlock&)>;

EncodedBlock encoded(const StateShard& shard, std::int64_t from, std::int64_t elements,
                     const ShardValues& values, DType dtype) {
  const FullTensor tensor{shard.parameter + "/" + shard.key,
                          {elements},
                          values.read(shard.values.part(from, elements))};
  std::string bytes = tensor_bytes(tensor, dtype);
  const FileRecord file = record_of(bytes);
  return {.block = {.parameter = shard.parameter,
                    .key = shard.key,
                    .sizes = shard.sizes,
                    .begin = shard.begin + from,
                    .elements = elements,
                    .file = file},
          .bytes = std::move(bytes)};
}

Result<void> encode_each(const ShardState& state, const ShardValues& values, DType dtype,
                         const TakeBlock& take) {
  for (const StateShard& shard : state.shards) {
    const std::int64_t elements = shard.is_saved ? shard.values.elements : 0;
    for (std::int64_t from = 0; from < elements; from += kBlockElements) {
      auto taken =
          take(encoded(shard, from, std::min(kBlockElements, elements - from), values, dtype));
      if (!taken) return taken;
    }
  }
  return {};
}

class ShardSaver final : public CheckpointFolder {
 public:
  ShardSaver(const ShardState& state, BlockSource blocks, FileSystem& files,
             const std::string& folder, const SaveOptions& options)
      : CheckpointFolder(files, folder, options, shards_head(state, options),
                         shard_part_files(options.place.tensor.size, state.data.size)),
        rank_(state.data.rank),
        blocks_(std::move(blocks)),
        part_{.blocks = {}, .steps = state.steps} {}

 private:
  Result<void> write_part() override {
    const ParallelRank& tensor = options_.place.tensor;
    if (auto made = make_folder(folder_of(block_file(rank_, tensor, 0))); !made) return made;
    const auto written = blocks_([this](EncodedBlock block) { return write_block(block); });
    if (!written) return written;
    return write_part_record(shard_part_file(rank_, tensor), shard_part_text(part_));
  }

  Result<void> write_block(const EncodedBlock& encoded) {
    const std::size_t number = part_.blocks.size();
    part_.blocks.push_back(encoded.block);
    return write(block_file(rank_, options_.place.tensor, number), encoded.bytes);
  }

  const int rank_;
  const BlockSource blocks_;
  ShardPart part_;
};

// Blocks that are written are not kept.
Result<void> give_each(ShardSnapshot& snapshot, const TakeBlock& take) {
  for (EncodedBlock& block : snapshot.blocks)
    if (auto taken = take(std::exchange(block, {})); !taken) return taken;
  return {};
}

bool is_leader(const ShardState& state, const SaveOptions& options) {
  return state.data.rank == 0 && options.place.tensor.rank == 0;
}

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
  const auto blocks = [&](const TakeBlock& take) {
    return encode_each(state, values, options.dtype, take);
  };
  return ShardSaver(state, blocks, files, folder, options)
      .save(is_leader(state, options), check_saved_state(state.head, options));
}

ShardSnapshot snapshot_of(const ShardState& state, const ShardValues& values, DType dtype) {
  ShardSnapshot snapshot{.state = state, .blocks = {}};
  (void)encode_each(state, values, dtype, [&](EncodedBlock block) -> Result<void> {
    snapshot.blocks.push_back(std::move(block));
    return {};
  });
  return snapshot;
}

std::unique_ptr<PendingSave> begin_shards(ShardSnapshot snapshot, FileSystem& files,
                                          const std::string& folder, const SaveOptions& options) {
  const auto kept = std::make_shared<ShardSnapshot>(std::move(snapshot));
  const auto blocks = [kept](const TakeBlock& take) { return give_each(*kept, take); };
  const auto make = [kept, blocks, &files, folder](const SaveOptions& own) {
    return std::make_unique<ShardSaver>(kept->state, blocks, files, folder, own);
  };
  return std::make_unique<PendingSave>(make, options, is_leader(kept->state, options),
                                       check_saved_state(kept->state.head, options));
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
