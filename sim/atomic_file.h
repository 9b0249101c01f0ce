#pragma once

#include <string>
#include <string_view>

#include "model/result.h"

namespace zeroproof {

// A file that appears under its name complete or not at all: written beside its place, synced,
// then renamed over it. Destroyed without `commit`, it leaves nothing behind. Errors name the
// path and have the code `usage`. Not thread-safe.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Result<void> write(std::string_view bytes);
  Result<void> commit();

 private:
  AtomicFile(std::string path, std::string temporary, int descriptor);
  void discard();

  std::string path_;
  std::string temporary_;
  int descriptor_;  // -1: committed, moved from or discarded
};

// A whole file at once.
Result<void> write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace zeroproof
