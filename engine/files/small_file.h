#pragma once

#include <cstdint>
#include <string>

#include "zeroproof/model/result.h"

namespace zeroproof {

// The whole file. Code unreadable: missing, a directory, or larger than `bytes_max`.
Result<std::string> read_small_file(const std::string& path, std::uint64_t bytes_max);

}  // namespace zeroproof
