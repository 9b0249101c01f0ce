#pragma once

#include <optional>
#include <string>
#include <vector>

#include "props/interpreter/observation.h"
#include "props/program/program.h"

namespace zeroproof::program {

// Where what an engine saw is not what the reference saw.
struct Difference {
  Observed what = Observed::value;
  std::string text;  // one line: name, element, both numbers
};

// How near numbers have to be. Bits, unless the data are real.
struct Tolerance {
  bool is_real = false;
  DType wire = DType::float32;
};
Tolerance tolerance_of(const Program& program);

// The first of each kind, in the order in which they were seen. An engine may observe more updates
// and values, of parameters that are not trained.
std::vector<Difference> differences(const Observations& engine, const Observations& reference,
                                    const Tolerance& tolerance);

// Where two ranks have other masters, weights or optimizer state after a step.
std::optional<std::string> difference_of_ranks(const std::vector<const Observations*>& ranks);

}  // namespace zeroproof::program
