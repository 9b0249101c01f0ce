#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/world/finding.h"
#include "zeroproof/props/property.h"

namespace zeroproof::hunt {

// A property that an execution falsified.
struct Falsified {
  const Property* property = nullptr;  // static
  std::string text;
  int rank = -1;  // -1: several
};

struct CaseResult {
  std::vector<Falsified> falsified;  // one a property, in the order in which they were seen
  std::uint64_t executions = 0;      // runs of the engines
  std::uint64_t events = 0;          // decisions and seam calls of the last of them

  // The first of `numbers` ("P26 R7") that is falsified, in their order; of no numbers, the first
  // of all. Null for none.
  const Falsified* find(std::string_view numbers) const;
  // Unless the property of that number is there. ZP_CHECK: it is one of the registry.
  void add(std::string_view number, std::string text, int rank = -1);
};

// The number of the property that says what the simulated world has found.
std::string_view property_of(sim::FindingKind kind);

// How many of a case's two runs are judged.
enum class Depth : std::uint8_t {
  first,  // the second run only where the first falsified no property
  all,    // both
};

}  // namespace zeroproof::hunt
