#include "props/program/typestate.h"

#include <utility>

#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

Verdict walk_in(State& state, const Statement& statement) {
  Walk walk(state, nullptr);
  return walk.run(statement);
}

}  // namespace

Result<Typestate> Typestate::of(const Program& program) {
  if (std::string why = head_problem(program); !why.empty())
    return fail(ErrorCode::usage, std::move(why));
  return Typestate(first_state(program));
}

Result<Expectation> Typestate::expect(const Statement& statement) const {
  Typestate after = *this;
  return walk_in(after.state_, statement);
}

Result<Expectation> Typestate::apply(const Statement& statement) {
  Typestate after = *this;
  auto expectation = walk_in(after.state_, statement);
  if (expectation) *this = std::move(after);
  return expectation;
}

Result<Expectation> Typestate::next(const Statement& statement, Typestate& after) const {
  after = *this;
  return walk_in(after.state_, statement);
}

Typestate Typestate::inside(const Statement& outer) const {
  Typestate after = *this;
  State& state = after.state_;
  if (const auto* const block = std::get_if<Block>(&outer.kind))
    open_block(state, *block);
  else if (std::holds_alternative<Catch>(outer.kind))
    state.frames.push_back({.kind = Frame::Kind::caught});
  else
    state.frames.push_back({.kind = Frame::Kind::out_of_memory});
  return after;
}

}  // namespace zeroproof::program
