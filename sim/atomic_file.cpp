#include "sim/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace zeroproof {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

  bool close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return descriptor < 0 || ::close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool write_and_flush(const std::string& path, std::string_view bytes) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  return file.is_open() && write_all(file.get(), bytes) && ::fsync(file.get()) == 0 && file.close();
}

tl::unexpected<Error> cannot_read(const std::string& path, std::string_view reason) {
  return fail(ErrorCode::unreadable, fmt::format("{}: cannot be read: {}", path, reason));
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, std::string_view bytes) {
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  if (write_and_flush(temporary, bytes) && ::rename(temporary.c_str(), path.c_str()) == 0) {
    return {};
  }
  const int reason = errno;
  if (reason != EEXIST) ::unlink(temporary.c_str());
  return fail(ErrorCode::usage,
              fmt::format("{}: cannot be written: {}", path, std::strerror(reason)));
}

Result<std::string> read_small_file(const std::string& path, std::uint64_t bytes_max) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return cannot_read(path, std::strerror(errno));
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return cannot_read(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return cannot_read(path, "it is a directory");

  std::string bytes;
  char chunk[65536];
  for (;;) {
    const ssize_t count = ::read(file.get(), chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_read(path, std::strerror(errno));
    if (count == 0) return bytes;
    bytes.append(chunk, static_cast<std::size_t>(count));
    if (bytes.size() > bytes_max) {
      return cannot_read(path, fmt::format("it has more than {} bytes", bytes_max));
    }
  }
}

}  // namespace zeroproof
