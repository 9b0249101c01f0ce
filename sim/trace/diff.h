#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/order_token.h"
#include "sim/trace/reader.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

struct TraceDiffOptions {
  TokenDetail detail = TokenDetail::order;
  std::vector<std::string> skip;   // tokens that start with one of these are left out
  std::size_t context_tokens = 4;  // how many equal tokens before the difference to keep
};

// A token and the event it came from.
struct PlacedToken {
  std::string token;
  std::uint64_t lc = 0;
  std::uint64_t line_number = 0;
};

// The first place where two traces disagree. A side without a token has ended there.
struct TraceDifference {
  std::uint64_t position = 0;  // number of equal tokens before it
  std::optional<PlacedToken> left;
  std::optional<PlacedToken> right;
  std::vector<std::string> before;  // the last equal tokens, oldest first
};

struct TraceComparison {
  std::uint64_t equal_tokens = 0;  // up to the difference, or of the whole traces
  std::optional<TraceDifference> difference;
};

// Compares the order tokens of two traces from where the readers stand, in bounded memory.
// `left_names` and `right_names` are the tables the readers were opened with (one may serve both).
// Stops at the first difference; a trace that cannot be read further is an error.
Result<TraceComparison> diff_traces(TraceReader& left, const NameTable& left_names,
                                    TraceReader& right, const NameTable& right_names,
                                    const TraceDiffOptions& options = {});

}  // namespace zeroproof
