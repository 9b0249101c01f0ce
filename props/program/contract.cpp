#include "props/program/contract.h"

#include <utility>

#include "model/check.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

// What never runs is allowed: after an exception, in a hook of a graph without a backward.
void note_all(const Body& body, std::map<const Statement*, Expectation>& expectations) {
  const auto note_hooks = [&](const auto& kind) {
    if constexpr (requires { kind.hooks; })
      for (const Hook& hook : kind.hooks) note_all(hook.body, expectations);
    if constexpr (requires { kind.body; }) note_all(kind.body, expectations);
  };
  for (const Statement& statement : body) {
    expectations.try_emplace(&statement);
    std::visit(note_hooks, statement.kind);
  }
}

}  // namespace

Result<Contract> Contract::of(const Program& program) {
  if (std::string why = head_problem(program); !why.empty())
    return fail(ErrorCode::usage, std::move(why));
  Contract contract;
  State state = first_state(program);
  Walk walk(state, &contract.expectations_);
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    const Verdict verdict = walk.run(program.body[i]);
    if (!verdict)
      return fail(ErrorCode::usage, "statement " + std::to_string(i) + ": " + verdict.error().text);
  }
  note_all(program.body, contract.expectations_);
  return contract;
}

const Expectation& Contract::of(const Statement& statement) const {
  const auto found = expectations_.find(&statement);
  ZP_CHECK(found != expectations_.end(), "the statement is of the program of this contract");
  return found->second;
}

}  // namespace zeroproof::program
