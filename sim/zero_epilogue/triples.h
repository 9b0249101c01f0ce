#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/zero_epilogue/event_names.h"
#include "sim/zero_epilogue/rank_automaton.h"

namespace zeroproof::zero_epilogue {

// Orders of three events of one engine, "a before b before c": what is feasible on a rank, exactly,
// and what schedules have shown.
class Triples {
 public:
  // Empty when there are too many to keep.
  static std::optional<Triples> make(const RankAutomaton& automaton, const EventNames& names,
                                     std::size_t ranks);

  void begin();  // the next schedule
  void add(std::size_t rank, std::size_t name);

  std::uint64_t feasible() const { return feasible_ * orders_.size(); }
  std::uint64_t seen() const;

 private:
  using Bits = std::vector<std::uint64_t>;

  Triples(std::size_t names, std::size_t ranks);
  void find_feasible(const RankAutomaton& automaton, const EventNames& names);

  std::size_t names_;
  std::uint64_t feasible_ = 0;                  // of one rank
  std::vector<Bits> orders_;                    // by rank: pairs of names, of this schedule
  std::vector<std::vector<std::size_t>> past_;  // by rank: names, of this schedule
  std::vector<Bits> seen_;                      // by rank and name: pairs before it
};

}  // namespace zeroproof::zero_epilogue
