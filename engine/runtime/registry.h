#pragma once

#include <string_view>
#include <vector>

namespace zeroproof {

// One implementation of the seam, by its name on the command line. The texts are static.
struct RuntimeInfo {
  std::string_view name;
  std::string_view summary;
  bool is_available = false;
  std::string_view reason;  // why it is not available, and what is needed; else empty
};

// All, whether this build has them or not, the most used first.
const std::vector<RuntimeInfo>& runtimes();
const RuntimeInfo* find_runtime(std::string_view name);  // null: no such runtime

}  // namespace zeroproof
