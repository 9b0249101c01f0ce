#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeroproof/model/result.h"
#include "zeroproof/props/property.h"

namespace zeroproof {

struct ExploreRequest {
  std::string scenario;  // an id, or the path of a *.json file (docs/reference/scenarios.md)
  std::string policy = "exact";  // zeroproof/engine/hooks/policies.h
  bool has_callback_api = true;  // false: the policy counts hooks
  std::uint32_t parameters = 4;  // a multiple of 4
  std::uint64_t executions_max = 100'000;
};

struct ExploreAnswer {
  std::uint64_t executions = 0;
  bool has_held = false;          // in every order, of which none is left
  std::vector<Verdict> verdicts;  // one a property, those of AddedProperty too
};

// Runs the scenario's program under the policy in every legal order, and judges each order by all
// properties. An error names an unknown scenario or policy, or a wrong number.
Result<ExploreAnswer> explore_every_order(const ExploreRequest& request);

}  // namespace zeroproof
