#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "props/foreign/rank_dump.h"

namespace zeroproof {

// The six verdicts on one collective of two ranks that PyTorch's flight-recorder analyzer knows.
enum class FlightVerdict : std::uint8_t {
  fully_matched,
  collective_type_mismatch,
  size_or_syntax_mismatch,
  collective_state_mismatch,
  collective_dtype_mismatch,
  undecided,  // all_to_all: sizes may differ by design
};

// "FULLY_MATCHED", "COLLECTIVE_TYPE_MISMATCH", ...: the analyzer's own words.
std::string_view flight_verdict_name(FlightVerdict verdict);

struct FlightMatch {
  FlightVerdict verdict = FlightVerdict::fully_matched;
  std::string difference;  // "sizes [[8]] and [[16]]"; empty when fully matched

  bool is_fine() const {
    return verdict == FlightVerdict::fully_matched || verdict == FlightVerdict::undecided;
  }
};

// Whether two ranks of a group of `group_size` (0: unknown) mean the same collective; for send and
// recv, whether they are the two ends of one message. An unknown size or dtype matches any.
FlightMatch match_collectives(const DumpedCollective& one, const DumpedCollective& other,
                              std::size_t group_size);

// The same without the states.
FlightMatch match_shapes(const CollectiveShape& one, const CollectiveShape& other,
                         std::size_t group_size);

// all_to_all in all its spellings: what ranks send and receive differs, only the sums agree.
bool is_uneven(std::string_view op);

// No rank can finish the operation before all have begun it: of a broadcast, the root can.
bool needs_all_ranks(std::string_view op);

// Elements of all tensors; a wild size cannot overflow it.
double elements_of(const TensorSizes& sizes);

}  // namespace zeroproof
