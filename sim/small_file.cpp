#include "sim/small_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace zeroproof {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() {
    if (is_open()) ::close(descriptor_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

tl::unexpected<Error> cannot_read(const std::string& path, std::string_view reason) {
  return fail(ErrorCode::unreadable, fmt::format("{}: cannot be read: {}", path, reason));
}

}  // namespace

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
