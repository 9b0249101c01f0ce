#pragma once

#include <string_view>

namespace zeroproof {

// Whether an operation of coll.issue goes to one other rank. Sends and receives of a group have
// numbers of their own, apart from its collectives (docs/reference/trace_format.md section 5).
constexpr bool is_point_to_point(std::string_view op) {
  return op == "send" || op == "recv";
}

}  // namespace zeroproof
