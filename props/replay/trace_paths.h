#pragma once

#include <string>
#include <vector>

#include "zeroproof/model/result.h"

namespace zeroproof {

// The traces that a user's path stands for: itself, or every *.jsonl and *.jsonl.gz below a
// folder, in sorted order. Whether a file exists is left to the reader. Code unreadable for a
// folder that cannot be read or has no trace.
Result<std::vector<std::string>> trace_paths(const std::string& path);

}  // namespace zeroproof
