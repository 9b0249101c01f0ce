#pragma once

#include <string>

#include "engine/checkpoint/checkpoint.h"

namespace zeroproof {

// Where an engine keeps its checkpoints in place of files, as DeepSpeed's checkpoint engines do.
// One rank of the data-parallel group saves for all, each of them loads. Errors as those of
// save_checkpoint() and load_checkpoint().
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  // An empty tag is "global_step<N>".
  virtual Result<void> save(TrainingState state, const std::string& folder,
                            const std::string& tag) = 0;
  virtual Result<TrainingState> load(const std::string& folder, const LoadOptions& options) = 0;
};

}  // namespace zeroproof
