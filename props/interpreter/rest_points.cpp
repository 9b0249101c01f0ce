#include "props/interpreter/rest_points.h"

#include <algorithm>
#include <string>

#include "model/check.h"
#include "props/interpreter/program_count.h"
#include "props/program/model_traits.h"
#include "props/program/typestate.h"

namespace zeroproof::program {
namespace {

bool is_at_rest(const EngineState& engine) {
  return engine.window == Window() && !engine.has_created_graph &&
         engine.owes == EngineState::Owes::none && !engine.tiled;
}

// Frames that were skipped leave what they have gathered to the next forward, or a step of the
// model, and weights that modules return stay whole until then.
bool frees_at_once(const State& state) {
  return !state.program->world.skips_frames &&
         std::ranges::none_of(state.program->models,
                              [](const Model& model) { return traits_of(model).returns_weights; });
}

// A step() within a window only counts.
bool steps_model(const State& state, const Statement& statement) {
  const auto* const step = as<Step>(statement);
  return step && state.steps_model(state.engines.at(step->engine));
}

// Whether every backward that its graph can have has been.
bool is_spent(const State& state, const Value& value) {
  return !value.has_graph || std::ranges::all_of(value.terms, [&](const Term& term) {
    const Graph& graph = state.graphs.at(term.graph);
    if (graph.has_second_graph) return false;
    return term.loss < 0 ? graph.is_trunk_freed : graph.freed_losses.contains(term.loss);
  });
}

bool is_at_rest(const State& state) {
  return std::ranges::all_of(state.engines,
                             [](const auto& named) { return is_at_rest(named.second); }) &&
         std::ranges::all_of(state.values,
                             [&](const auto& named) { return is_spent(state, named.second); });
}

// A forward for a backward has begun something, and so have backwards: what one that fails leaves
// is given up as the engine is called again.
bool begins_pass(const Statement& statement) {
  const auto* const forward = as<Forward>(statement);
  return as<Backward>(statement) || as<CallModule>(statement) ||
         (forward && forward->mode == Forward::Mode::train);
}

}  // namespace

std::set<std::size_t> rest_points(const Program& program, const Contract& contract) {
  std::set<std::size_t> points;
  bool has_begun = false;  // a pass, since the last step
  auto typestate = Typestate::of(program);
  ZP_CHECK(typestate, "the program has a contract");
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    const Statement& statement = program.body[i];
    const bool is_model_step = steps_model(typestate->state(), statement);
    ZP_CHECK(typestate->apply(statement), "the program has a contract");
    const auto* const drop = as<Drop>(statement);
    if (drop && drop->rank) break;  // the others have the graph as long as they run
    if (contract.of(statement).is_refused()) continue;
    const bool is_step = as<Step>(statement) != nullptr;
    has_begun = !is_step && (has_begun || any_statement({statement}, begins_pass));
    const bool is_done =
        is_model_step || ((is_step || !has_begun) && frees_at_once(typestate->state()));
    if (is_done && is_at_rest(typestate->state())) points.insert(i);
  }
  return points;
}

}  // namespace zeroproof::program
