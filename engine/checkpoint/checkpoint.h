#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/parallel_place.h"
#include "engine/checkpoint/training_state.h"
#include "zeroproof/engine/files/file_system.h"
#include "zeroproof/model/dtype.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// Checkpoints in a universal layout: a folder per parameter, a file per state, whatever the number
// of ranks. docs/reference/checkpoints.md has the format.

struct SaveOptions {
  std::string tag = {};  // letters, digits, '.', '_', '-'; empty: "global_step<N>"
  // How values are stored; a tensor that would change by it is stored in float64.
  DType dtype = DType::float32;
  ParallelPlace place = {};
  // Of all ranks that save; needed where there are several. Called the same number of times by
  // each, whatever fails.
  std::function<void()> barrier = {};
};

// Saves as the newest checkpoint in `folder`. One rank of the data-parallel group calls it for all;
// of tensor- and expert-parallel groups every rank does, with its part, and rank (0, 0) finishes.
// Until it returns, a crash or an error leaves the previous checkpoint or the new one complete;
// afterwards the new one survives. A folder has one saver at a time. Error (usage): names the file
// and what to do.
Result<void> save_checkpoint(const TrainingState& state, FileSystem& files,
                             const std::string& folder, const SaveOptions& options = {});

class PendingSave;  // engine/checkpoint/pending_save.h

// The same, but the files are written by a thread, from the state that is given: by start(), until
// finish().
std::unique_ptr<PendingSave> begin_checkpoint(TrainingState state, FileSystem& files,
                                              const std::string& folder,
                                              const SaveOptions& options);

struct TensorTarget {
  std::string name;
  Shape sizes;
};

// What the loading engine has: exactly that must be in the checkpoint.
struct LoadTargets {
  std::vector<TensorTarget> parameters;
  std::vector<TensorTarget> optimizer_state;
};

LoadTargets targets_of(const TrainingState& state);

struct LoadOptions {
  std::string tag = {};                     // empty: the latest
  std::optional<LoadTargets> targets = {};  // none: whatever is there
  // None: there is no tensor-parallel group, which is warned about once a call and taken as one
  // rank (docs/spec/zero.md 6.3).
  std::optional<ParallelRank> tensor_parallel = {};
  ParallelRank expert_parallel = {};
  // The loading optimizer's groups; empty: those that were saved.
  std::vector<std::vector<std::string>> groups = {};
  std::function<void(const std::string& text)> on_warning = {};
};

// Reads and checks everything before it returns anything: every byte of every file against its
// checksum, names and shapes against the targets, steps within each group (equal, P87). The
// tensors are this rank's parts, in the targets' order or else as saved. Errors: unreadable for a
// missing or damaged file or another version, usage for a checkpoint that does not fit; one line
// that names the file and what to do.
Result<TrainingState> load_checkpoint(FileSystem& files, const std::string& folder,
                                      const LoadOptions& options = {});

}  // namespace zeroproof
