#pragma once

#include "sim/search/layered_search.h"
#include "sim/zero_epilogue/findings.h"
#include "sim/zero_epilogue/ranks.h"

namespace zeroproof::zero_epilogue {

struct FullResult {
  LayeredCounts counts;
  Findings findings;  // with certified least numbers of events
};

// Every state, without any reduction: the reference of everything else. A state in which a
// property was violated has no successors; all violations of the instance are collected.
// Code usage when the codes need more than kBytesMax of memory.
constexpr std::uint64_t kBytesMax = std::uint64_t{4} << 30;
Result<FullResult> search_all(const Ranks& ranks, std::size_t workers = 1,
                              const std::function<bool()>& should_stop = {});

}  // namespace zeroproof::zero_epilogue
