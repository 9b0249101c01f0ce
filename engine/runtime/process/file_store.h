#pragma once

#include <memory>
#include <string>

#include "engine/runtime/process/liveness_lock.h"
#include "zeroproof/internal/engine/runtime/process/store.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

struct StoreMember {
  int rank = 0;
  int size = 1;
  std::string run_id;  // of this run, where the launcher gives it one; see Launch
};

// A store in a folder that all processes see, on one machine or shared between several. Each run
// has a folder of its own in it, made by its rank 0 and named to the others by a file that counts
// only as long as that rank 0 lives: what an earlier run left is never taken for this one's.
class FileStore final : public Store {
 public:
  // Rank 0 makes the run's folder, the others wait for that, at most so long. Usage: a folder that
  // cannot be written, or in which another job is at work; failed: rank 0 did not come.
  static Result<std::unique_ptr<Store>> open(const std::string& folder, const StoreMember& member,
                                             Milliseconds at_most);
  ~FileStore() override;

  void set(const std::string& key, std::string_view value) override;
  std::optional<std::string> wait(const std::string& key, Milliseconds at_most) override;
  void remove(const std::string& key) override;
  std::vector<PeerState> presences() override;
  void leave(Milliseconds at_most) override;
  std::string place() const override { return folder_; }

  FileStore(std::string folder, std::string run, const StoreMember& member, LivenessLock life);

 private:
  std::string path_of(const std::string& key) const;
  void give_up_run() noexcept;

  std::string folder_;  // of all runs of this id
  std::string run_;     // of this one
  StoreMember member_;
  LivenessLock life_;
  bool has_left_ = false;
};

}  // namespace zeroproof
