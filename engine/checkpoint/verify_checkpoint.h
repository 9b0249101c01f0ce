#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/files/ranged_file_system.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// A file of a checkpoint that is not what the checkpoint's manifests say.
struct FileProblem {
  std::string path;
  std::string kind;  // "missing", "unreadable", "size", "checksum", "content"
  std::string text;  // "it has 12 of 40 bytes"
};

struct VerifiedCheckpoint {
  std::string path;
  std::uint64_t files = 0;  // that were read to their end, right or wrong
  std::uint64_t bytes = 0;
  std::vector<FileProblem> problems;
  bool is_stopped = false;  // not everything was read
};

// Reads every file of a checkpoint, a piece at a time, and compares it with its record: all that is
// wrong, not only the first. Blocks must make up whole states. `should_stop` is asked now and then.
// Error: no checkpoint is there.
Result<VerifiedCheckpoint> verify_checkpoint(RangedFileSystem& files, const std::string& folder,
                                             const std::string& tag,
                                             const std::function<bool()>& should_stop);

}  // namespace zeroproof
