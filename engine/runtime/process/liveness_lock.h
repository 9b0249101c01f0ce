#pragma once

#include <string>

#include "zeroproof/engine/files/file_system.h"

namespace zeroproof {

// A file that is locked as long as the process that made it lives: the kernel unlocks it, however
// the process ends. Works on local folders and on NFS.
class LivenessLock {
 public:
  // The file appears locked. A fault: it cannot be made, or is there already.
  static FileResult<LivenessLock> take(const std::string& path);
  LivenessLock(LivenessLock&& other) noexcept;
  LivenessLock& operator=(LivenessLock&&) = delete;
  ~LivenessLock();

  // Whether its maker lives; also false without such a file.
  static bool is_held(const std::string& path);

 private:
  explicit LivenessLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace zeroproof
