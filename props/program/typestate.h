#pragma once

#include "props/program/contract.h"
#include "props/program/state.h"

namespace zeroproof::program {

// The written contract of what a user may do: where a program is, statement by statement, and what
// has to come of the next one. docs/reference/program.md has the rules in words.
class Typestate {
 public:
  // Before the first statement. An error says why world, configuration, models and engines make no
  // sense; code usage. Reads the program but for its body, and must not outlive it.
  static Result<Typestate> of(const Program& program);

  // What has to come of it here; or why it makes no sense. Bodies and hooks are walked, too.
  Result<Expectation> expect(const Statement& statement) const;
  // The same, and goes on after it. An error does not change the state.
  Result<Expectation> apply(const Statement& statement);
  // The same, with `after` as what it goes on to; after an error `after` must not be used.
  Result<Expectation> next(const Statement& statement, Typestate& after) const;

  // Inside a block, a Catch or an OutOfMemory, before the first statement of its body. What it says
  // of itself is not checked.
  Typestate inside(const Statement& outer) const;

  const State& state() const { return state_; }

 private:
  friend class Contract;
  explicit Typestate(State state) : state_(std::move(state)) {}
  State state_;
};

}  // namespace zeroproof::program
