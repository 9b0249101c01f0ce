#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "props/program/source.h"

namespace zeroproof::program {

struct Shrunk {
  Choices choices;
  std::size_t runs = 0;  // of the case
};

// Replays the values as a case: the choices it really made where it still fails, else none. Equal
// values must have equal answers.
using StillFails = std::function<std::optional<Choices>(const std::vector<std::uint32_t>&)>;

// The values of a case, which is all that a replay needs.
std::vector<std::uint32_t> values_of(const Choices& choices);

// The order of cases: fewer choices first, then lower ones from the front.
bool is_simpler(const Choices& a, const Choices& b);

// The simplest case that deletions, replacements and lower choices lead to from `start`, which
// fails. It is a fixed point: shrinking the result returns the same, unless `max_runs` ended it.
Shrunk shrink(const Choices& start, const StillFails& still_fails, std::size_t max_runs);

}  // namespace zeroproof::program
