#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "zeroproof/engine/files/file_system.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// A file that appears under its name complete or not at all: written beside its place, synced,
// then renamed over it. Destroyed without `commit`, it leaves no file. Errors name the
// path and have the code `usage`. Not thread-safe.
class AtomicFile {
 public:
  // `files` must outlive it.
  static Result<AtomicFile> create(FileSystem& files, const std::string& path);
  static Result<AtomicFile> create(const std::string& path);  // of the machine

  AtomicFile(AtomicFile&& other) noexcept = default;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Result<void> write(std::string_view bytes);
  Result<void> commit();

 private:
  AtomicFile(FileSystem& files, std::string path, std::string temporary,
             std::unique_ptr<WritableFile> file);
  void discard();

  FileSystem* files_;
  std::string path_;
  std::string temporary_;
  std::unique_ptr<WritableFile> file_;  // none: committed, moved from or discarded
};

// A whole file at once.
Result<void> write_file_atomically(FileSystem& files, const std::string& path,
                                   std::string_view bytes);
Result<void> write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace zeroproof
