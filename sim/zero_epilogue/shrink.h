#pragma once

#include <cstdint>
#include <vector>

#include "sim/zero_epilogue/reduced_search.h"

namespace zeroproof::zero_epilogue {

struct ShrinkOptions {
  bool shrinks_settings = false;     // P, N, K, B, order, late too
  std::uint64_t executions = 2'000;  // at most
};

struct Shrunk {
  Settings settings;
  Counterexample counterexample;
  std::uint64_t executions = 0;  // that it took
};

// A failing schedule made small: what the violation does not depend on is sliced away, then passes,
// buckets and single events are left out and choices lowered as long as the same property is
// violated, each time by a run of the model. The result is in canonical form: the violating rank
// is rank 0, events are in the least order that keeps the order within each rank. For A5 the
// schedule runs on, always with the first event, until no rank moves. `failing` has to violate
// `property` under `settings`.
Shrunk shrink(const Settings& settings, const Counterexample& failing,
              const ShrinkOptions& options = {});

}  // namespace zeroproof::zero_epilogue
