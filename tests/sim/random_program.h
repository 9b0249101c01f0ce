#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <pcg_random.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/search/dpor.h"

namespace zeroproof::search_test {

enum class Op : std::uint8_t { read, write, add, lock, unlock, post, await, choose, either, check };

// What a process of a test program does next. `is_guarded`: only while its register is odd.
struct Instruction {
  Op op = Op::read;
  std::uint8_t object = 0;
  std::uint8_t value = 0;  // either: whose counter
  bool is_guarded = false;
};

using Code = std::vector<std::vector<Instruction>>;  // by process

// A small concurrent program over variables, locks and counters. Every counter is posted by one
// process. A check that fails is a planted bug, and so is a state in which nothing can move.
class RandomProgram {
 public:
  struct State {
    std::array<std::uint8_t, 4> at{};
    std::array<std::uint8_t, 4> registers{};
    std::array<std::uint8_t, 4> variables{};
    std::array<std::uint8_t, 4> owners{};  // of locks, from 1
    std::array<std::uint8_t, 4> counters{};
    std::uint32_t failed = 0;  // checks, a bit each
  };

  explicit RandomProgram(Code code) : code_(std::move(code)) {
    for (const auto& process : code_) {
      auto& row = footprints_.emplace_back();
      for (const Instruction& one : process) row.push_back(footprint_of(one));
      for (const Instruction& one : process) row.push_back(second_footprint_of(one));
    }
  }

  State initial() const {
    State state;
    for (std::uint32_t i = 0; i < code_.size(); ++i) skip(state, i);
    return state;
  }
  std::size_t processes() const { return code_.size(); }

  void next(const State& state, std::uint32_t process, std::vector<TraceEvent>& events) const {
    const std::uint8_t at = state.at[process];
    if (at == code_[process].size()) return;
    const Op op = code_[process][at].op;
    const auto& row = footprints_[process];
    events.push_back({process, at * 2U, &row[at]});
    if (op != Op::choose && op != Op::either) return;
    events.push_back({process, at * 2U + 1, &row[code_[process].size() + at]});
  }

  bool is_enabled(const State& state, const TraceEvent& event) const {
    const Instruction& one = code_[event.process][event.label / 2];
    if (one.op == Op::lock) return state.owners[one.object] == 0;
    if (one.op == Op::either && event.label % 2 == 1) return state.counters[one.value] >= 1;
    if (one.op == Op::await) return state.counters[one.object] >= one.value;
    return true;
  }

  void execute(State& state, const TraceEvent& event) const {
    const Instruction& one = code_[event.process][event.label / 2];
    std::uint8_t& variable = state.variables[one.object];
    std::uint8_t& own = state.registers[event.process];
    switch (one.op) {
      case Op::read:
        own = variable;
        break;
      case Op::write:
        variable = one.value;
        break;
      case Op::add:
        ++variable;
        break;
      case Op::lock:
        state.owners[one.object] = static_cast<std::uint8_t>(event.process + 1);
        break;
      case Op::unlock:
        state.owners[one.object] = 0;
        break;
      case Op::post:
        ++state.counters[one.object];
        break;
      case Op::await:
        break;
      case Op::either:
        if (event.label % 2 == 0) ++variable;
        [[fallthrough]];
      case Op::choose:
        own = static_cast<std::uint8_t>(event.label % 2);
        break;
      case Op::check:
        if (variable == one.value) state.failed |= 1U << (event.process * 8 + event.label / 2);
        break;
    }
    ++state.at[event.process];
    skip(state, event.process);
  }

  bool has_ended(const State& state) const {
    for (std::size_t i = 0; i < code_.size(); ++i) {
      if (state.at[i] != code_[i].size()) return false;
    }
    return true;
  }

 private:
  static Footprint footprint_of(const Instruction& one) {
    const auto variable = std::uint32_t{one.object};
    const std::uint32_t lock = variable + 8;
    const std::uint32_t counter = variable + 16;
    switch (one.op) {
      case Op::read:
      case Op::check:
        return {{variable, Touch::read}};
      case Op::write:
        return {{variable, Touch::write}};
      case Op::add:
      case Op::either:
        return {{variable, Touch::add}};
      case Op::lock:
      case Op::unlock:
        return {{lock, Touch::write}};
      case Op::post:
        return {{counter, Touch::add}};
      case Op::await:
        return {{counter, Touch::await, one.value}};
      case Op::choose:
        break;
    }
    return {};
  }

  static Footprint second_footprint_of(const Instruction& one) {
    if (one.op != Op::either) return {};
    return {{std::uint32_t{one.value} + 16, Touch::await, 1}};
  }

  void skip(State& state, std::uint32_t process) const {
    std::uint8_t& at = state.at[process];
    while (at < code_[process].size() && code_[process][at].is_guarded &&
           state.registers[process] % 2 == 0) {
      ++at;
    }
  }

  Code code_;
  std::vector<std::vector<Footprint>> footprints_;
};

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

// Two to four processes; locks are mostly given back, counters mostly posted often enough.
inline Code random_code(std::uint64_t seed) {
  pcg32 random(seed);
  Code code(2 + random(3));
  const std::uint32_t length = code.size() == 2 ? 5 : code.size() == 3 ? 4 : 3;
  for (std::uint32_t process = 0; process < code.size(); ++process) {
    auto& lines = code[process];
    while (lines.size() < length) {
      const auto object = static_cast<std::uint8_t>(random(2));
      const auto value = static_cast<std::uint8_t>(random(3));
      const bool is_guarded = random(4) == 0;
      const auto poster =
          static_cast<std::uint8_t>(random(static_cast<std::uint32_t>(code.size())));
      switch (random(9)) {
        case 0:
          lines.push_back({Op::read, object, 0, is_guarded});
          break;
        case 1:
          lines.push_back({Op::write, object, value, is_guarded});
          break;
        case 2:
          lines.push_back({Op::add, object, 0, is_guarded});
          break;
        case 3:
          lines.push_back({Op::lock, object, 0, false});
          if (random(2) == 0) lines.push_back({Op::add, object, 0, false});
          if (random(8) != 0) lines.push_back({Op::unlock, object, 0, false});
          break;
        case 4:
          lines.push_back({Op::post, static_cast<std::uint8_t>(process), 0, is_guarded});
          break;
        case 5:
          if (poster == process) break;
          lines.push_back({Op::await, poster, static_cast<std::uint8_t>(1 + random(2)), false});
          break;
        case 6:
          lines.push_back({Op::choose, 0, 0, false});
          break;
        case 7:
          if (poster != process) lines.push_back({Op::either, object, poster, false});
          break;
        default:
          lines.push_back({Op::check, object, value, is_guarded});
          break;
      }
    }
  }
  return code;
}

}  // namespace zeroproof::search_test
