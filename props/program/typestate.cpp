#include "props/program/typestate.h"

#include <utility>

#include "props/program/rules.h"

namespace zeroproof::program {

Result<Typestate> Typestate::of(const Program& program) {
  if (std::string why = head_problem(program); !why.empty())
    return fail(ErrorCode::usage, std::move(why));
  return Typestate(first_state(program));
}

Result<Expectation> Typestate::expect(const Statement& statement) const {
  Typestate after = *this;
  return after.apply(statement);
}

Result<Expectation> Typestate::apply(const Statement& statement) {
  State after = state_;
  Walk walk(after, nullptr);
  auto expectation = walk.run(statement);
  if (expectation) state_ = std::move(after);
  return expectation;
}

}  // namespace zeroproof::program
