#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/runtime/background_work.h"

namespace zeroproof {

// A save whose files one rank's thread writes while the rank goes on. The threads of the ranks do
// not meet: each writes its record last, and the leader's commits once all records are there. Not
// thread-safe; the file system is used by the thread until finish() returns.
class PendingSave {
 public:
  // Makes the folder that is saved, with options that live as long; it owns what it writes.
  using MakeFolder = std::function<std::unique_ptr<CheckpointFolder>(const SaveOptions& options)>;

  // Meets once, by the barrier of the options, which is not used afterwards. `checked` as
  // CheckpointFolder has it.
  PendingSave(MakeFolder make, SaveOptions options, bool is_leader, Result<void> checked);
  ~PendingSave();  // waits for the thread; what is not committed yet is given up
  PendingSave(const PendingSave&) = delete;
  PendingSave& operator=(const PendingSave&) = delete;

  // Whether this rank can go on. Where one cannot, none may start().
  const Result<void>& begun() const { return begun_; }
  void start();
  // Waits for what start() started, and meets. Error: as save_checkpoint(). Throws what the thread
  // threw.
  Result<void> finish(const CheckpointFolder::Barrier& barrier);

 private:
  const MakeFolder make_;
  const SaveOptions options_;
  const bool is_leader_;
  bool is_finished_ = false;
  std::unique_ptr<CheckpointFolder> folder_;
  Result<void> begun_;
  std::optional<BackgroundWork> writing_;
};

}  // namespace zeroproof
