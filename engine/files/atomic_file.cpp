#include "engine/files/atomic_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "engine/files/posix_file_system.h"

namespace zeroproof {
namespace {

tl::unexpected<Error> cannot_write(const std::string& path, const FileFault& fault) {
  return fail(ErrorCode::usage,
              fmt::format("{}: cannot be written: {}; choose another place", path, fault.reason));
}

}  // namespace

AtomicFile::AtomicFile(FileSystem& files, std::string path, std::string temporary,
                       std::unique_ptr<WritableFile> file)
    : files_(&files),
      path_(std::move(path)),
      temporary_(std::move(temporary)),
      file_(std::move(file)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  files_ = other.files_;
  path_ = std::move(other.path_);
  temporary_ = std::move(other.temporary_);
  file_ = std::move(other.file_);
  return *this;
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::discard() {
  if (file_ == nullptr) return;
  file_.reset();
  // A failure here cannot be reported; the name says that the file is not finished.
  (void)files_->remove_all(temporary_);
}

Result<AtomicFile> AtomicFile::create(FileSystem& files, const std::string& path) {
  std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  auto file = files.create(temporary);
  if (!file) return cannot_write(path, file.error());
  return AtomicFile(files, path, std::move(temporary), std::move(*file));
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  return create(posix_file_system(), path);
}

Result<void> AtomicFile::write(std::string_view bytes) {
  if (auto written = write_all(*file_, bytes); !written)
    return cannot_write(path_, written.error());
  return {};
}

Result<void> AtomicFile::commit() {
  if (auto synced = file_->sync(); !synced) return cannot_write(path_, synced.error());
  if (auto moved = files_->rename(temporary_, path_); !moved) {
    return cannot_write(path_, moved.error());
  }
  file_.reset();
  // The rename itself must survive a crash too.
  const auto synced = files_->sync_folder(folder_of(path_));
  if (!synced) return cannot_write(path_, synced.error());
  return {};
}

Result<void> write_file_atomically(FileSystem& files, const std::string& path,
                                   std::string_view bytes) {
  auto file = AtomicFile::create(files, path);
  if (!file) return tl::unexpected(file.error());
  if (auto written = file->write(bytes); !written) return written;
  return file->commit();
}

Result<void> write_file_atomically(const std::string& path, std::string_view bytes) {
  return write_file_atomically(posix_file_system(), path, bytes);
}

}  // namespace zeroproof
