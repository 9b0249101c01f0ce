#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "zeroproof/engine/files/file_system.h"

namespace zeroproof::train {

// Whether a path is `top` or lies below it.
bool is_within(const std::string& path, const std::string& top);

// A file system in memory that refuses only what POSIX refuses: where a simulated
// program keeps its checkpoints. It does not simulate failures (tests/engine has one
// that crashes). Not thread-safe.
class KeptFiles final : public FileSystem {
 public:
  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override;
  FileResult<std::vector<std::string>> list(const std::string& folder) override;
  bool exists(const std::string& path) override;
  FileResult<void> make_folders(const std::string& path) override;
  FileResult<void> rename(const std::string& from, const std::string& to) override;
  FileResult<void> remove_all(const std::string& path) override;
  FileResult<void> sync_folder(const std::string& path) override;

 private:
  struct Entry {
    bool is_folder = false;
    std::string bytes;
  };
  class File;
  bool is_folder(const std::string& path) const;
  bool is_file(const std::string& path) const;
  bool holds_something(const std::string& folder) const;
  // Why no entry can have this name; empty: the folder for it is there.
  std::string parent_fault(const std::string& path) const;
  // Why rename() cannot; empty: it can.
  std::string rename_fault(const std::string& from, const std::string& to) const;

  std::map<std::string, Entry> entries_;  // by path
};

}  // namespace zeroproof::train
