#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "zeroproof/engine/files/file_system.h"

namespace zeroproof {

// A file system for ranks that are threads: one call at a time.
class SharedFiles final : public FileSystem {
 public:
  // `inner` must outlive it and its files.
  explicit SharedFiles(FileSystem& inner) : inner_(inner) {}

  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override;
  FileResult<std::vector<std::string>> list(const std::string& folder) override;
  bool exists(const std::string& path) override;
  FileResult<void> make_folders(const std::string& path) override;
  FileResult<void> rename(const std::string& from, const std::string& to) override;
  FileResult<void> remove_all(const std::string& path) override;
  FileResult<void> sync_folder(const std::string& path) override;

 private:
  class File;

  FileSystem& inner_;
  std::mutex mutex_;
};

}  // namespace zeroproof
