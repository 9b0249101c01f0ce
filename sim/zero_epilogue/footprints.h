#pragma once

#include "sim/search/footprint.h"
#include "sim/zero_epilogue/ranks.h"

namespace zeroproof::zero_epilogue {

// What an enabled event touches: a rank's engine, its number of launches, its number of
// completions, and, where buckets may be launched out of order, the collective itself.
Footprint footprint_of(const Ranks& ranks, const Digits& digits, const Event& event);

// The same of a rank that has launched and completed so many.
Footprint footprint_of(const RankRules& rules, std::size_t rank, EventKind kind,
                       const LocalFacts& facts);

}  // namespace zeroproof::zero_epilogue
