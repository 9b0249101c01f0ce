#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "zeroproof/internal/engine/runtime/span.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// What a rank has of one parameter's master weights or of one of its optimizer states, where it
// lies. Without elements: the rank has no part of it.
struct StateShard {
  std::string parameter;
  std::string key;         // "fp32", "exp_avg"
  Shape sizes;             // of the whole
  std::int64_t begin = 0;  // of the whole's elements, row-major
  Span values;
  bool is_saved = true;  // by this rank; false: another one has the same
};

using StepCounts = std::map<std::string, std::int64_t>;  // by parameter

}  // namespace zeroproof
