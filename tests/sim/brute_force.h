#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/random_program.h"

namespace zeroproof::search_test {

// What can be seen of all executions.
struct Seen {
  std::uint64_t executions = 0;
  std::uint64_t classes = 0;
  std::set<std::uint32_t> failures;  // sets of failed checks; the highest bit: a deadlock
};

// Every execution of the program, and the classes that they fall into: two executions are in one
// class when swaps of neighbours that are independent lead from one to the other. Written from
// that definition, and not from the happens-before order that DPOR uses.
class BruteForce {
 public:
  explicit BruteForce(const RandomProgram& program) : program_(program) {}

  // False when there are more than `most`.
  bool run(std::size_t most) {
    most_ = most;
    walk(program_.initial());
    if (order_.size() > most_) return false;
    seen_.executions = order_.size();
    join();
    return true;
  }
  const Seen& seen() const { return seen_; }

 private:
  void walk(const RandomProgram::State& state) {
    if (order_.size() > most_) return;
    std::vector<TraceEvent> events;
    for (std::uint32_t i = 0; i < program_.processes(); ++i) program_.next(state, i, events);
    bool is_end = true;
    for (const TraceEvent& event : events) {
      if (!program_.is_enabled(state, event)) continue;
      is_end = false;
      RandomProgram::State after = state;
      program_.execute(after, event);
      at_.push_back(event);
      walk(after);
      at_.pop_back();
    }
    if (!is_end) return;
    order_.emplace(name(at_), order_.size());
    executions_.push_back(at_);
    seen_.failures.insert(state.failed | (program_.has_ended(state) ? 0U : 1U << 31));
  }

  static std::string name(const std::vector<TraceEvent>& events) {
    std::string text;
    for (const TraceEvent& event : events) {
      text.push_back(static_cast<char>('a' + event.process));
      text.push_back(static_cast<char>('A' + event.label));
    }
    return text;
  }

  std::size_t root(std::size_t of) {
    while (parent_[of] != of) of = parent_[of] = parent_[parent_[of]];
    return of;
  }

  void join() {
    for (std::size_t i = 0; i < executions_.size(); ++i) parent_.push_back(i);
    seen_.classes = executions_.size();
    for (std::size_t i = 0; i < executions_.size(); ++i) {
      std::vector<TraceEvent> events = executions_[i];
      for (std::size_t at = 1; at < events.size(); ++at) {
        if (are_dependent(events[at - 1], events[at])) continue;
        std::swap(events[at - 1], events[at]);
        const auto other = order_.find(name(events));
        std::swap(events[at - 1], events[at]);
        if (other == order_.end() || root(other->second) == root(i)) continue;
        parent_[root(other->second)] = root(i);
        --seen_.classes;
      }
    }
  }

  const RandomProgram& program_;
  std::size_t most_ = 0;
  std::vector<TraceEvent> at_;
  std::vector<std::vector<TraceEvent>> executions_;
  std::map<std::string, std::size_t> order_;
  std::vector<std::size_t> parent_;
  Seen seen_;
};

}  // namespace zeroproof::search_test
