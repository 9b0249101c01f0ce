#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "props/program/contract.h"
#include "props/program/state.h"

namespace zeroproof::program {

// The contract by subject, in props/program/rules/. Each rule says of one statement why it makes no
// sense where it stands, or what has to come of it, and moves the state past it. After an error
// the state must not be used.

using Verdict = Result<Expectation>;

// A condition that makes a statement senseless, and the sentence that says so.
struct Rule {
  bool is_broken = false;
  const char* why = "";
};
// The first broken one's sentence; empty: none is.
std::string first_broken(std::initializer_list<Rule> rules);

// Runs statements one after the other.
class Walk {
 public:
  // Both must outlive it. `record`: what came of each statement; may be null.
  Walk(State& state, std::map<const Statement*, Expectation>* record)
      : state_(state), record_(record) {}

  State& state() { return state_; }
  Verdict run(const Statement& statement);
  // Up to a statement that throws.
  Result<void> run_body(const Body& body);
  // The same in a frame; `leave` runs after it, also where it throws.
  Result<void> run_in(Frame frame, const Body& body);

  // Whether something that the user throws is on its way to a Catch.
  bool is_raising() const { return is_raising_; }
  void raise() { is_raising_ = true; }
  void catch_raised() { is_raising_ = false; }

  // Whether statements stay where they are, so that a graph may refer to its forward.
  bool is_stable() const { return record_ != nullptr; }

 private:
  Result<void> note(const Statement& statement, const Expectation& expectation);

  State& state_;
  std::map<const Statement*, Expectation>* record_;
  bool is_raising_ = false;
};

// The engine, where statements about it make sense; the error says why they do not.
Result<EngineState*> engine_of(State& state, const std::string& name);
tl::unexpected<Error> no_sense(std::string why);
inline Expectation refused_with(EngineErrorId id) {
  return {.refusal = id};
}
inline Expectation refused_otherwise() {
  return {.is_refused_otherwise = true};
}

// Subject: graphs.
Verdict check(Walk& walk, const Forward& forward);
Verdict check(Walk& walk, const CallModule& call);
Verdict check(Walk& walk, const Sum& sum);
Verdict check(Walk& walk, const Drop& drop);
Verdict check(Walk& walk, const Transform& transform);
Verdict check(Walk& walk, const ForeignBackward& backward);
// Subject: backwards.
Verdict check(Walk& walk, const Backward& backward);
// Subject: accumulation.
Verdict check(Walk& walk, const Step& step);
Verdict check(Walk& walk, const ZeroGrad& zero_grad);
Verdict check(Walk& walk, const SetBoundary& set);
Verdict check(Walk& walk, const SetLearningRate& set);
Verdict check(Walk& walk, const SetGrad& set);
// Subject: loss scaling.
Verdict check(Walk& walk, const Scale& scale);
Verdict check(Walk& walk, const SetScale& set);
// Subject: blocks.
Verdict check(Walk& walk, const Block& block);
Verdict check(Walk& walk, const Raise& raise);
Verdict check(Walk& walk, const Catch& caught);
Verdict check(Walk& walk, const OutOfMemory& shortage);
// Subject: checkpoints.
Verdict check(Walk& walk, const Save& save);
Verdict check(Walk& walk, const Load& load);
Verdict check(Walk& walk, const Recreate& recreate);
Verdict check(Walk& walk, const Resume& resume);
// Subject: parameters.
Verdict check(Walk& walk, const Freeze& freeze);
Verdict check(Walk& walk, const Inspect& inspect);
Verdict check(Walk& walk, const RegisterExternal& external);
Verdict check(Walk& walk, const SetLeaf& leaf);
Verdict check(Walk& walk, const EvaluateGuards& guards);
Verdict check(Walk& walk, const ReleaseGathered& release);
// Subject: engines.
Verdict check(Walk& walk, const TemporaryEngine& engine);
Verdict check(Walk& walk, const TryConfig& config);

// Why a program makes no sense before its first statement; empty: it may.
std::string head_problem(const Program& program);
// A leaf module that the configuration names and no model of an engine has, in that stage.
std::string leaf_names_problem(const Program& program, int stage);
std::string model_problem(const Program& program, const Model& model);
// Gradients at their limits where they have no room.
std::string magnitude_problem(const Program& program);
std::string magnitude_problem(const Program& program, const Model& model);
// Whether more than one backward of a window would be past the limit.
bool has_one_backward(const Data& data);
bool is_past_limit(const State& state, const Value& value);  // as it is where it is differentiated
// Of a program whose head makes sense, before its first statement.
State first_state(const Program& program);
EngineState new_engine(const State& state, const EngineSpec& engine);

// The frame of a block, and what it says of its engine; does not check the block.
void open_block(State& state, const Block& block);

// What several subjects move.
void clear_window(EngineState& engine);  // as zero_grad() does
// Everything a load or a step changes of an engine's weights.
void renew_weights(EngineState& engine);

}  // namespace zeroproof::program
