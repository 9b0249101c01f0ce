#include "engine/runtime/process/liveness_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace zeroproof {

// Locked under another name first: no process sees it between being made and being locked.
FileResult<LivenessLock> LivenessLock::take(const std::string& path) {
  const std::string fresh = fmt::format("{}.{}", path, ::getpid());
  LivenessLock lock(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (lock.descriptor_ < 0) return file_fault(std::strerror(errno));
  const bool is_named =
      ::flock(lock.descriptor_, LOCK_EX | LOCK_NB) == 0 && ::link(fresh.c_str(), path.c_str()) == 0;
  const int error = errno;
  ::unlink(fresh.c_str());
  if (!is_named) return file_fault(std::strerror(error));
  return lock;
}

LivenessLock::LivenessLock(LivenessLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

LivenessLock::~LivenessLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool LivenessLock::is_held(const std::string& path) {
  const LivenessLock probe(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (probe.descriptor_ < 0) return false;
  return ::flock(probe.descriptor_, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace zeroproof
