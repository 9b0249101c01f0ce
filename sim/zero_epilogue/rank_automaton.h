#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/zero_epilogue/rank_rules.h"
#include "zeroproof/model/result.h"

namespace zeroproof::zero_epilogue {

// A numbered local state: dense, in order of discovery, 0 is the initial one.
using LocalId = std::uint32_t;

struct Move {
  LocalId next = 0;  // meaningless when the event violates
  RankEvent event;
  Property violated = Property::none;
};

// The few numbers of a local state that other ranks and the search look at.
struct LocalFacts {
  std::uint8_t launched = 0;
  std::uint8_t completed = 0;
  bool has_ended = false;
  bool has_finished = false;
  bool waits_for_stream = false;  // see RankRules
  bool may_launch = false;
  bool may_finish = false;
  bool may_violate = false;  // one of its moves does
};

// Every state that one rank can be in whatever the others do, with its moves. The states of all
// ranks together are tuples of these numbers, which is what makes the search fast and small
// (SPIN's "collapse", with the components known beforehand).
class RankAutomaton {
 public:
  static constexpr LocalId kNone = ~LocalId{0};
  static constexpr std::size_t kStatesMax = std::size_t{1} << 24;

  // Code usage when the instance has more than kStatesMax local states.
  static Result<RankAutomaton> make(const RankRules& rules);

  std::size_t size() const { return states_.size(); }
  const RankState& state(LocalId id) const { return states_[id]; }
  const LocalFacts& facts(LocalId id) const { return facts_[id]; }

  // The rank's own moves in canonical order.
  std::span<const Move> moves(LocalId id) const {
    return {moves_.data() + first_move_[id], first_move_[id + 1] - first_move_[id]};
  }
  // After one completion on the rank's stream; kNone when no completion is in flight.
  LocalId after_completion(LocalId id) const { return after_completion_[id]; }

 private:
  class Builder;
  std::vector<RankState> states_;
  std::vector<LocalFacts> facts_;
  std::vector<std::uint32_t> first_move_;
  std::vector<Move> moves_;
  std::vector<LocalId> after_completion_;
};

}  // namespace zeroproof::zero_epilogue
