#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/order_count.h"
#include "sim/search/code_table.h"
#include "sim/zero_epilogue/ranks.h"

namespace zeroproof::zero_epilogue {

// Every complete schedule of an instance, counted on the acyclic graph of its states: how many
// there are, how likely a uniform random walk violates what, and the bijection between schedules
// and the numbers below their count. A schedule ends when no rank can move or with a violation.
class PathCounts {
 public:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint32_t kStatesMax = 40'000'000;

  // Code usage when there are more than kStatesMax states, cannot_run when `should_stop` said so.
  static Result<PathCounts> make(const Ranks& ranks, const std::function<bool()>& should_stop = {});

  std::uint64_t states() const { return met_.size(); }

  // Exact; "overflowed" from 2^128 on. approximately() is right to 15 digits in any case.
  OrderCount schedules() const;
  double approximately() const { return approximate_.front(); }

  // The chance that a walk which takes each enabled event with the same probability violates it.
  double probability(Property property) const {
    return violated_.front()[static_cast<std::size_t>(property)];
  }

  bool has_number(Wide number) const { return !has_overflowed_ && number < exact_.front(); }
  // The schedule of a number below schedules(), which must not have overflowed: a uniform number
  // gives a uniform schedule. Numbers follow the dictionary order of events.
  std::vector<Event> schedule(Wide number) const;
  // Its inverse; the events must be a complete schedule.
  Wide number(const std::vector<Event>& schedule) const;

 private:
  explicit PathCounts(const Ranks& ranks) : ranks_(ranks) {}
  enum class Built : std::uint8_t { all, too_many, stopped };
  Built build(const std::function<bool()>& should_stop);
  void settle(std::uint32_t state);
  Wide below(Property violated, Code next) const;

  const Ranks& ranks_;
  CodeTable met_;
  std::vector<Wide> exact_;
  std::vector<double> approximate_;
  std::vector<std::array<double, kProperties>> violated_;
  bool has_overflowed_ = false;
};

}  // namespace zeroproof::zero_epilogue
