#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/search/happens_before.h"
#include "sim/search/wakeup_tree.h"

namespace zeroproof {

struct DporCounts {
  std::uint64_t executions = 0;  // complete ones
  std::uint64_t blocked = 0;     // cut because all that was enabled had been explored: never
  std::uint64_t events = 0;      // executed, without those of race checks
  bool has_exhausted = false;
};

// Optimal dynamic partial-order reduction: one complete execution of each happens-before class
// (wakeup trees; Abdulla, Aronis, Jonsson, Sagonas: Source sets, 2017). A Program has
//   class State;                       // copyable
//   State initial() const;
//   std::size_t processes() const;
//   // Appends what the process can do next, whether enabled now or not.
//   void next(const State&, std::uint32_t process, std::vector<TraceEvent>&) const;
//   bool is_enabled(const State&, const TraceEvent&) const;
//   void execute(State&, const TraceEvent&) const;
// What a process can do next depends on what happened before its last event alone. Only the sole
// next event of its process may be disabled by others, as a lock is; it then conflicts with
// whatever disables it, and another event of the same kind is what enables it again. Every
// execution ends.
template <class Program>
class Dpor {
 public:
  explicit Dpor(const Program& program) : program_(program), trace_(program.processes()) {}

  // Calls on_execution(trace, final state) for each; stops when it returns false.
  template <class OnExecution>
  DporCounts run(OnExecution on_execution) {
    frames_.clear();
    frames_.push_back({program_.initial(), {}, {}, {}});
    open(frames_.back());
    bool is_wanted = true;
    while (is_wanted) {
      Frame& frame = frames_.back();
      if (!frame.tree.empty()) {
        descend(frame);
        continue;
      }
      if (frame.is_end) {
        ++counts_.executions;
        is_wanted = on_execution(std::as_const(trace_), std::as_const(frame.state));
        if (is_wanted) reverse_races();
      }
      if (frames_.size() == 1) break;
      ascend();
    }
    counts_.has_exhausted = is_wanted;
    return counts_;
  }

  // So far; while run() runs.
  const DporCounts& counts() const { return counts_; }

 private:
  using State = typename Program::State;
  struct Frame {
    State state;
    std::vector<TraceEvent> sleep;
    std::vector<WakeupNode> tree;       // the front is being explored
    std::vector<TraceEvent> unsettled;  // alternatives to the front that could not be added at once
    bool is_end = false;
  };

  std::vector<TraceEvent> pending(const State& state) const {
    std::vector<TraceEvent> events;
    for (std::uint32_t i = 0; i < program_.processes(); ++i) program_.next(state, i, events);
    return events;
  }

  static bool has(std::span<const TraceEvent> events, const TraceEvent& wanted) {
    for (const TraceEvent& event : events) {
      if (is_same(event, wanted)) return true;
    }
    return false;
  }

  // A sequence was chosen for the state already, or any event will do.
  void open(Frame& frame) {
    if (!frame.tree.empty()) return;
    frame.is_end = true;
    for (std::uint32_t i = 0; i < program_.processes(); ++i) {
      scratch_.clear();
      program_.next(frame.state, i, scratch_);
      for (const TraceEvent& event : scratch_) {
        if (!program_.is_enabled(frame.state, event)) continue;
        frame.is_end = false;
        if (has(frame.sleep, event)) continue;
        frame.tree.push_back({event, {}});
        return;
      }
    }
    if (!frame.is_end) ++counts_.blocked;
  }

  void descend(Frame& frame) {
    add_alternatives(frame);
    const TraceEvent event = frame.tree.front().event;
    Frame next{frame.state, {}, std::move(frame.tree.front().children), {}};
    frame.tree.front().children.clear();
    for (const TraceEvent& asleep : frame.sleep) {
      if (!are_dependent(asleep, event)) next.sleep.push_back(asleep);
    }
    program_.execute(next.state, event);
    trace_.push(event);
    ++counts_.events;
    open(next);
    frames_.push_back(std::move(next));
  }

  void ascend() {
    frames_.pop_back();
    trace_.pop();
    Frame& frame = frames_.back();
    frame.sleep.push_back(frame.tree.front().event);
    frame.tree.erase(frame.tree.begin());
  }

  // What else the process of the front could do here.
  void add_alternatives(Frame& frame) {
    const TraceEvent front = frame.tree.front().event;
    frame.unsettled.clear();
    scratch_.clear();
    program_.next(frame.state, front.process, scratch_);
    for (const TraceEvent& other : scratch_) {
      if (other.label == front.label) continue;
      const bool is_done = has(frame.sleep, other);
      if (is_done && *other.footprint == *front.footprint) continue;
      const std::span<const TraceEvent> sequence(&other, 1);
      if (program_.is_enabled(frame.state, other) && !has_weak_initial(frame.sleep, sequence)) {
        insert(frame.tree, {other});
      } else {
        frame.unsettled.push_back(other);
      }
    }
  }

  void reverse_races() {
    const std::size_t size = trace_.size();
    for (std::size_t i = size; i-- > 0;) {
      for (const TraceEvent& other : frames_[i].unsettled) reverse(i, other);
      reverse_all(trace_.races(i), trace_.event(i));
    }
    for (const TraceEvent& event : pending(frames_.back().state)) {
      reverse_all(trace_.races_of(event), event);
    }
  }

  // Of a chain of events that `event` depends on, the last that it can go before.
  void reverse_all(std::span<const std::uint32_t> races, const TraceEvent& event) {
    reversed_.clear();
    for (const std::uint32_t first : races) {
      bool is_known = false;
      for (const std::uint32_t later : reversed_) is_known |= trace_.is_before(first, later);
      if (!is_known && reverse(first, event)) reversed_.push_back(first);
    }
  }

  // All that does not depend on the event at `first`, then `event`: to be explored instead of it.
  // False when that is impossible.
  bool reverse(std::size_t first, const TraceEvent& event) {
    Frame& frame = frames_[first];
    State state = frame.state;
    std::vector<TraceEvent> sequence;
    for (std::size_t i = first + 1; i < trace_.size(); ++i) {
      if (trace_.is_before(first, i)) continue;
      sequence.push_back(trace_.event(i));
      program_.execute(state, sequence.back());
    }
    if (!program_.is_enabled(state, event)) return false;
    sequence.push_back(event);
    if (!has_weak_initial(frame.sleep, sequence)) insert(frame.tree, std::move(sequence));
    return true;
  }

  const Program& program_;
  HappensBefore trace_;
  DporCounts counts_;
  std::vector<Frame> frames_;
  std::vector<TraceEvent> scratch_;
  std::vector<std::uint32_t> reversed_;
};

}  // namespace zeroproof
