#pragma once

#include <functional>
#include <string>

#include "engine/files/ranged_file_system.h"

namespace zeroproof {

// A file system that calls `on_read` with the bytes of each successful read. Both must outlive it.
class CountedFiles final : public RangedFileSystem {
 public:
  CountedFiles(RangedFileSystem& files, std::function<void(std::size_t)> on_read)
      : files_(files), on_read_(std::move(on_read)) {}

  FileResult<std::string> read_range(const std::string& path, std::uint64_t begin,
                                     std::size_t bytes) override {
    return counted(files_.read_range(path, begin, bytes));
  }
  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    return counted(files_.read(path, bytes_max));
  }

  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    return files_.create(path);
  }
  FileResult<std::vector<std::string>> list(const std::string& folder) override {
    return files_.list(folder);
  }
  bool exists(const std::string& path) override { return files_.exists(path); }
  FileResult<void> make_folders(const std::string& path) override {
    return files_.make_folders(path);
  }
  FileResult<void> rename(const std::string& from, const std::string& to) override {
    return files_.rename(from, to);
  }
  FileResult<void> remove_all(const std::string& path) override { return files_.remove_all(path); }
  FileResult<void> sync_folder(const std::string& path) override {
    return files_.sync_folder(path);
  }

 private:
  FileResult<std::string> counted(FileResult<std::string> read) {
    if (read) on_read_(read->size());
    return read;
  }

  RangedFileSystem& files_;
  std::function<void(std::size_t)> on_read_;
};

}  // namespace zeroproof
