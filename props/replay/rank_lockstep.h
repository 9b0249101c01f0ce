#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "props/replay/rank_cursor.h"

namespace zeroproof {

// One file of a pair, and where its lane begins to be comparable.
struct LockstepSide {
  std::string path;
  RankLane lane;
};

struct LockstepOptions {
  std::int64_t first_number = -1;   // items with a smaller number are passed over; -1: none
  bool compares_parameters = true;  // false where the ranks hold different models
  std::function<bool()> should_stop;
};

// Where two lanes part. A side without items has ended there.
struct LockstepDifference {
  static constexpr std::size_t kLookAhead = 64;

  std::uint64_t agreed = 0;   // items before it
  std::deque<LaneItem> mine;  // from the difference on, at most kLookAhead
  std::deque<LaneItem> other;
  std::optional<LaneItem> mine_before;  // the last that agreed
  std::optional<LaneItem> other_before;
  DiagnosisMoment mine_last;  // of a side that has ended: what stands last in its file
  DiagnosisMoment other_last;
};

// Whether two ranks issued the same, by the rule of the operation and as far as both sides know.
bool is_same_item(const LaneItem& a, const LaneItem& b, bool compares_parameters);

// Reads two files side by side along one lane up to the first difference. nullopt: there is none,
// a file cannot be read any more, or `should_stop` said so. Memory does not grow with the files.
std::optional<LockstepDifference> first_difference(const LockstepSide& mine,
                                                   const LockstepSide& other,
                                                   const LockstepOptions& options);

// How two ranks' items explain each other from a difference on.
struct LockstepExplanation {
  enum class Kind : std::uint8_t {
    mine_left_out,   // mine goes on with what other has after its first item
    other_left_out,  // the other way round
    swapped,         // both have the same items, in another order
    mine_ended,
    other_ended,
    unlike,  // another item, and what follows is no explanation
  };
  Kind kind = Kind::unlike;
  std::size_t length = 0;  // swapped: items until both agree again
};

// The explanation that covers most of what follows. One that leaves no remainder wins.
LockstepExplanation explain(const LockstepDifference& difference, bool compares_parameters);

}  // namespace zeroproof
