#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/axis_plan.h"
#include "engine/checkpoint/shard_blocks.h"
#include "engine/checkpoint/shards.h"
#include "engine/zero/state_shard.h"

namespace zeroproof {

// A checkpoint of shards that is loaded, by any number of data- and tensor-parallel ranks. Where
// another number of tensor-parallel ranks saved it, partition rules say what a rank takes of whose
// shards, as they do for whole tensors (docs/reference/checkpoints.md 4).
class ShardLoad {
 public:
  // Reads what is where. Errors as load_checkpoint().
  static Result<ShardLoad> open(FileSystem& files, const std::string& folder,
                                const std::string& tag, const ParallelRank& tensor);

  const TrainingState& head() const { return head_; }  // without tensors
  const StepCounts& steps() const { return saved_.front().steps(); }
  // That all shards can be loaded: names, shapes, and the bytes of every block that they need.
  Result<void> check(const std::vector<StateShard>& shards,
                     const std::vector<std::vector<std::string>>& groups) const;
  // Writes them, a part of a block at a time. After check() only files that change meanwhile are
  // an error.
  Result<void> apply(const std::vector<StateShard>& shards, const ShardValues& values) const;

 private:
  // What this rank has of a state, by what was saved.
  struct Origin {
    ShardIndex::Key key;
    std::vector<Shape> sizes;  // of the parts of `saved_`
    AxisPlan plan;
  };

  Result<void> check_names(const std::vector<StateShard>& shards) const;
  Result<Origin> origin_of(const StateShard& shard) const;
  Result<void> plan(Origin& origin, const Shape& wanted) const;
  Result<void> check_blocks(const StateShard& shard, const Origin& origin) const;
  Result<void> load(const StateShard& shard, const Origin& origin, const ShardValues& values) const;

  FileSystem* files_ = nullptr;
  std::string path_;
  TrainingState head_;
  ParallelRank tensor_;
  bool is_of_as_many_ = true;      // tensor-parallel ranks
  std::vector<ShardIndex> saved_;  // of this rank where it is, else of all ranks in their order
};

}  // namespace zeroproof
