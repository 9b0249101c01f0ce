// Bodies, frames, and what several subjects share.
#include <utility>

#include "props/program/rules.h"
#include "zeroproof/model/result.h"

namespace zeroproof::program {
namespace {

Result<void> obligation(const EngineState& engine, const Statement& statement) {
  const bool clears = std::holds_alternative<ZeroGrad>(statement.kind);
  const bool loads = std::holds_alternative<Load>(statement.kind);
  if (engine.owes == EngineState::Owes::zero_grad && !clears)
    return no_sense("zero_grad() of the engine has to come first");
  if (engine.owes == EngineState::Owes::load && !loads)
    return no_sense("the new engine has to load a checkpoint first");
  return {};
}

std::string engine_named_by(const Statement& statement) {
  const auto name = [](const auto& kind) -> std::string {
    if constexpr (requires { kind.engine; }) return kind.engine;
    return {};
  };
  return std::visit(name, statement.kind);
}

}  // namespace

tl::unexpected<Error> no_sense(std::string why) {
  return fail(ErrorCode::usage, std::move(why));
}

std::string first_broken(std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules)
    if (rule.is_broken) return rule.why;
  return {};
}

Result<EngineState*> engine_of(State& state, const std::string& name) {
  const auto found = state.engines.find(name);
  if (found == state.engines.end()) return no_sense("there is no engine '" + name + "'");
  return &found->second;
}

Verdict Walk::run(const Statement& statement) {
  const std::string engine = engine_named_by(statement);
  if (const auto found = state_.engines.find(engine); found != state_.engines.end())
    if (auto owed = obligation(found->second, statement); !owed)
      return tl::unexpected(owed.error());
  Verdict verdict =
      std::visit([&](const auto& kind) { return check(*this, kind); }, statement.kind);
  if (!verdict) return verdict;
  if (const auto noted = note(statement, *verdict); !noted) return tl::unexpected(noted.error());
  return verdict;
}

// A hook's body may run more than once.
Result<void> Walk::note(const Statement& statement, const Expectation& expectation) {
  if (!record_) return {};
  const auto [at, is_new] = record_->try_emplace(&statement, expectation);
  if (is_new || at->second == expectation) return {};
  return no_sense("a statement of a hook that is refused in one backward and not in another");
}

Result<void> Walk::run_body(const Body& body) {
  for (const Statement& statement : body) {
    if (const Verdict verdict = run(statement); !verdict) return tl::unexpected(verdict.error());
    if (is_raising_) break;
  }
  return {};
}

Result<void> Walk::run_in(Frame frame, const Body& body) {
  state_.frames.push_back(std::move(frame));
  Result<void> result = run_body(body);
  state_.frames.pop_back();
  return result;
}

void clear_window(EngineState& engine) {
  engine.window = {};
  if (engine.owes == EngineState::Owes::zero_grad) engine.owes = EngineState::Owes::none;
}

void renew_weights(EngineState& engine) {
  ++engine.weights;
}

}  // namespace zeroproof::program
