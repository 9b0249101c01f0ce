#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/shard_blocks.h"
#include "engine/zero/state_shard.h"

namespace zeroproof {

// How numbers of a rank are reached; a part of a shard at a time, of kBlockElements at most.
struct ShardValues {
  std::function<std::vector<double>(const Span&)> read;
  std::function<void(const Span&, const std::vector<double>&)> write;
};

struct ShardState {
  TrainingState head;  // without tensors
  std::vector<StateShard> shards;
  StepCounts steps;
  ParallelRank data;  // of the rank that has them
};

// Saves as save_checkpoint() does; every rank of the data- and tensor-parallel groups calls it,
// with a barrier of all of them.
Result<void> save_shards(const ShardState& state, const ShardValues& values, FileSystem& files,
                         const std::string& folder, const SaveOptions& options);

// What a rank saves, as its files will have it.
struct ShardSnapshot {
  struct Block {
    ShardBlock block;
    std::string bytes;
  };
  ShardState state;
  std::vector<Block> blocks;
};

ShardSnapshot snapshot_of(const ShardState& state, const ShardValues& values, DType dtype);

// Saves as save_shards(), but a thread writes the files: by start(), until finish().
std::unique_ptr<PendingSave> begin_shards(ShardSnapshot snapshot, FileSystem& files,
                                          const std::string& folder, const SaveOptions& options);

}  // namespace zeroproof
