#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/search/trace_event.h"

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
// process. A check that fails is a seeded bug, and so is a state in which no process can move.
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

}  // namespace zeroproof::search_test
