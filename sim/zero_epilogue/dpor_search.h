#pragma once

#include <functional>
#include <vector>

#include "sim/search/dpor.h"
#include "sim/zero_epilogue/findings.h"
#include "sim/zero_epilogue/reduced_search.h"

namespace zeroproof::zero_epilogue {

struct DporResult {
  DporCounts counts;
  std::uint64_t classes = 0;  // distinct ones among the executions
  Findings findings;          // lengths: what the violation depends on, in the best execution
  std::vector<Counterexample> counterexamples;  // one a violated property; not minimised
};

// One execution of each happens-before class; processes are the engine and the stream of each
// rank. A rank that violates stops, the others go on, so an execution may show several findings.
// `should_stop` is asked after every execution; may be empty.
DporResult search_dpor(const Ranks& ranks,
                       const std::function<bool(const DporCounts&)>& should_stop = {});

}  // namespace zeroproof::zero_epilogue
