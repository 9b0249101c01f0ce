#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/search/trace_event.h"

namespace zeroproof {

// A sequence of events with its happens-before order, by vector clocks: an event comes after the
// earlier ones that it depends on, and after the additions that it awaited. What is awaited must
// be added to by one process only, so that it is known which additions those were.
class HappensBefore {
 public:
  explicit HappensBefore(std::size_t processes) : processes_(processes) {}

  void push(const TraceEvent& event);
  void pop();

  std::size_t size() const { return events_.size(); }
  const TraceEvent& event(std::size_t index) const { return events_[index]; }

  // left < right
  bool is_before(std::size_t left, std::size_t right) const {
    return clock(right)[events_[left].process] > position_[left];
  }
  // Earlier events that this one conflicts with and that its process did not know of before: those
  // that may be reversible. Latest first.
  std::span<const std::uint32_t> races(std::size_t index) const { return races_[index]; }

  // The same for an event that has not happened.
  std::vector<std::uint32_t> races_of(const TraceEvent& event) const;

  // Equal for equivalent sequences, and different for others but by chance.
  std::uint64_t class_hash() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  const std::uint32_t* clock(std::size_t index) const { return &clocks_[index * processes_]; }
  std::uint32_t last_of(std::uint32_t process) const;
  void find_races(const TraceEvent& event, std::vector<std::uint32_t>& races) const;
  void join(std::uint32_t* into, std::size_t index) const;
  void join_awaited(std::uint32_t* into, const TraceEvent& event) const;

  std::size_t processes_;
  std::vector<TraceEvent> events_;
  std::vector<std::uint32_t> position_;            // among the events of its process
  std::vector<std::uint32_t> clocks_;              // a row an event: events known, by process
  std::vector<std::vector<std::uint32_t>> races_;  // rows are kept when events are popped
};

}  // namespace zeroproof
