#pragma once

#include <functional>
#include <string>
#include <utility>

#include "engine/files/forwarding_files.h"

namespace zeroproof {

// A file system that calls `on_read` with the bytes of each successful read. Both must outlive it.
class CountedFiles final : public ForwardingFiles<RangedFileSystem> {
 public:
  CountedFiles(RangedFileSystem& files, std::function<void(std::size_t)> on_read)
      : ForwardingFiles(files), on_read_(std::move(on_read)) {}

  FileResult<std::string> read_range(const std::string& path, std::uint64_t begin,
                                     std::size_t bytes) override {
    return counted(inner().read_range(path, begin, bytes));
  }
  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    return counted(inner().read(path, bytes_max));
  }

 private:
  FileResult<std::string> counted(FileResult<std::string> read) {
    if (read) on_read_(read->size());
    return read;
  }

  std::function<void(std::size_t)> on_read_;
};

}  // namespace zeroproof
