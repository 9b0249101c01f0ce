#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/search/code_table.h"
#include "sim/zero_epilogue/event_names.h"
#include "sim/zero_epilogue/ranks.h"
#include "sim/zero_epilogue/triples.h"

namespace zeroproof::zero_epilogue {

// A condition that some schedule should meet.
struct Probe {
  std::string_view name;
  std::string_view statement;
  std::uint64_t hits = 0;  // schedules that met it
};

struct CoverageCounts {
  std::uint64_t states = 0;
  std::optional<std::uint64_t> all_states;  // exact; absent when there are too many to count
  // Of conflicting events of one engine, over all ranks: "a before b".
  std::uint64_t pair_orders = 0;
  std::uint64_t feasible_pair_orders = 0;
  // Of two events that can come either way: seen both ways.
  std::uint64_t pairs_both_ways = 0;
  std::uint64_t feasible_pairs = 0;
  // Of three events of one engine; absent when there are too many to count.
  std::optional<std::uint64_t> triples;
  std::optional<std::uint64_t> feasible_triples;
};

// How much of an instance the schedules have shown. Probes that the settings exclude are left out.
class Coverage {
 public:
  static constexpr std::size_t kEventsMax = 256;  // names of events of one rank

  // Code usage when the instance is too large to know what is feasible.
  static Result<Coverage> make(const Ranks& ranks);

  // The events of one schedule, in their order.
  void add(const std::vector<Event>& schedule);

  CoverageCounts counts() const;
  const std::vector<Probe>& probes() const { return probes_; }

 private:
  using Names = std::bitset<kEventsMax>;

  explicit Coverage(const Ranks& ranks);
  void find_feasible();
  std::uint64_t both_ways(const Names* seen) const;
  void note_probes(const std::vector<RankState>& states, const Event& event);
  void meet(std::string_view probe);

  const Ranks& ranks_;
  EventNames names_;
  std::optional<std::uint64_t> all_states_;
  std::vector<Names> feasible_;  // of one rank, by event: what can come before it
  CodeTable met_;
  std::vector<Names> seen_;  // by rank and event: what came before it
  std::optional<Triples> triples_;
  std::vector<Probe> probes_;
  std::vector<bool> is_met_;  // by this schedule
};

}  // namespace zeroproof::zero_epilogue
