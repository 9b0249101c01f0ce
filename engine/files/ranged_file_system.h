#pragma once

#include "zeroproof/engine/files/file_system.h"

namespace zeroproof {

// A file system that also gives pieces of files, for files that are larger than memory.
class RangedFileSystem : public FileSystem {
 public:
  // The bytes [begin, begin + bytes) of the file; fewer where it ends before.
  virtual FileResult<std::string> read_range(const std::string& path, std::uint64_t begin,
                                             std::size_t bytes) = 0;
};

}  // namespace zeroproof
