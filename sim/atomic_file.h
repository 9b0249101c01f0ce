#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/result.h"

namespace zeroproof {

// Writes to a temporary file beside `path`, flushes it to the disk and renames it, so that the
// file is there whole or not at all. Code usage: the path is the user's.
Result<void> write_file_atomically(const std::string& path, std::string_view bytes);

// The whole file. Code unreadable: missing, a directory, or larger than `bytes_max`.
Result<std::string> read_small_file(const std::string& path, std::uint64_t bytes_max);

}  // namespace zeroproof
