#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "zeroproof/engine/partition_rule.h"

namespace zeroproof {

class CheckpointStore;  // engine/checkpoint/checkpoint_store.h
class FileSystem;       // zeroproof/engine/files/file_system.h

// A checkpoint has whole tensors, or blocks of each rank (docs/reference/checkpoints.md 5).
enum class CheckpointLayout : std::uint8_t { universal, shards };

struct EngineCheckpointOptions {
  std::string tag = {};              // empty: "global_step<N>", or the latest
  FileSystem* files = nullptr;       // null: the machine's
  CheckpointStore* store = nullptr;  // in place of files
  std::function<void(const std::string& text)> on_warning = {};
  CheckpointLayout layout = CheckpointLayout::universal;  // of a load too
  // Of a save by several tensor-parallel ranks: what each parameter is a part of, by name, and the
  // rule of all others (`inferred` refuses them). The same on all ranks.
  std::map<std::string, PartitionRule> partition_rules = {};
  PartitionRule other_parameters = {};
  // Of a load: the /scheduler goes on as it was saved. False: from where this engine's is.
  bool restores_scheduler = true;
};

}  // namespace zeroproof
