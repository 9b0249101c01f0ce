#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/files/ranged_file_system.h"

namespace zeroproof {

// In front of another file system: what a derived class does not change goes on to it. `Files`:
// FileSystem, or RangedFileSystem, whose read_range() the derived class has.
template <class Files>
class ForwardingFiles : public Files {
 public:
  explicit ForwardingFiles(Files& inner) : inner_(inner) {}  // must outlive it

  FileResult<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    return inner_.create(path);
  }
  FileResult<std::string> read(const std::string& path, std::uint64_t bytes_max) override {
    return inner_.read(path, bytes_max);
  }
  FileResult<std::vector<std::string>> list(const std::string& folder) override {
    return inner_.list(folder);
  }
  bool exists(const std::string& path) override { return inner_.exists(path); }
  FileResult<void> make_folders(const std::string& path) override {
    return inner_.make_folders(path);
  }
  FileResult<void> rename(const std::string& from, const std::string& to) override {
    return inner_.rename(from, to);
  }
  FileResult<void> remove_all(const std::string& path) override { return inner_.remove_all(path); }
  FileResult<void> sync_folder(const std::string& path) override {
    return inner_.sync_folder(path);
  }

 protected:
  Files& inner() { return inner_; }

 private:
  Files& inner_;
};

}  // namespace zeroproof
