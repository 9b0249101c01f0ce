#include "sim/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace zeroproof {
namespace {

tl::unexpected<Error> cannot_write(const std::string& path) {
  return fail(ErrorCode::usage, fmt::format("{}: cannot be written: {}; choose another place", path,
                                            std::strerror(errno)));
}

// The rename itself must survive a crash too.
bool sync_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  // Some file systems cannot sync a folder; they say EINVAL.
  const bool is_synced = ::fsync(descriptor) == 0 || errno == EINVAL;
  ::close(descriptor);
  return is_synced;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::move(other.temporary_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::discard() {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  ::unlink(temporary_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const int descriptor = ::open(temporary.c_str(), kFlags, 0666);
  if (descriptor < 0) return cannot_write(path);
  return AtomicFile(path, std::move(temporary), descriptor);
}

Result<void> AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      return cannot_write(path_);
    }
  }
  return {};
}

Result<void> AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) return cannot_write(path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot_write(path_);
  ::close(std::exchange(descriptor_, -1));
  if (!sync_folder_of(path_)) return cannot_write(path_);
  return {};
}

Result<void> write_file_atomically(const std::string& path, std::string_view bytes) {
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  if (auto written = file->write(bytes); !written) return written;
  return file->commit();
}

}  // namespace zeroproof
