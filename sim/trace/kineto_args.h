#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/json_object.h"

namespace zeroproof {

// What Kineto writes about a collective, under the names of its own (ParamCommsUtils of PyTorch),
// so that scripts that read torch.profiler's traces find it in ours.
struct KinetoCollective {
  std::string_view op;       // of hooktrace: "all_reduce"
  std::string_view dtype;    // "float32" or "fp32"; empty: unknown
  std::string_view group;    // its name
  std::int64_t bytes = -1;   // of the largest tensor; -1: unknown
  std::int64_t number = -1;  // in its group
  std::int32_t rank = 0;
  std::optional<std::vector<std::int32_t>> ranks;  // of the group
};

// Adds the members to the args of a trace event. What is unknown is left out: element counts need
// dtype and bytes.
void add_kineto_args(const KinetoCollective& collective, JsonObject& args);

}  // namespace zeroproof
