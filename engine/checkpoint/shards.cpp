#include "engine/checkpoint/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/pending_save.h"
#include "engine/checkpoint/state_check.h"
#include "engine/checkpoint/tensor_file.h"

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
    auto written = blocks_([this](const EncodedBlock& block) { return write_block(block); });
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

}  // namespace zeroproof
