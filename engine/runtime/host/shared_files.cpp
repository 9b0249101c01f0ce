#include "engine/runtime/host/shared_files.h"

#include <utility>

namespace zeroproof {

class SharedFiles::File final : public WritableFile {
 public:
  File(std::unique_ptr<WritableFile> inner, std::mutex& mutex)
      : inner_(std::move(inner)), mutex_(mutex) {}

  FileResult<std::size_t> write_some(std::string_view bytes) override {
    const std::lock_guard lock(mutex_);
    return inner_->write_some(bytes);
  }
  FileResult<void> sync() override {
    const std::lock_guard lock(mutex_);
    return inner_->sync();
  }

 private:
  std::unique_ptr<WritableFile> inner_;
  std::mutex& mutex_;
};

FileResult<std::unique_ptr<WritableFile>> SharedFiles::create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto file = inner_.create(path);
  if (!file) return file;
  return std::make_unique<File>(std::move(*file), mutex_);
}

bool SharedFiles::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return inner_.exists(path);
}

FileResult<std::string> SharedFiles::read(const std::string& path, std::uint64_t bytes_max) {
  const std::lock_guard lock(mutex_);
  return inner_.read(path, bytes_max);
}

FileResult<std::vector<std::string>> SharedFiles::list(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  return inner_.list(folder);
}

FileResult<void> SharedFiles::make_folders(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return inner_.make_folders(path);
}

FileResult<void> SharedFiles::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  return inner_.rename(from, to);
}

FileResult<void> SharedFiles::remove_all(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return inner_.remove_all(path);
}

FileResult<void> SharedFiles::sync_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return inner_.sync_folder(path);
}

}  // namespace zeroproof
