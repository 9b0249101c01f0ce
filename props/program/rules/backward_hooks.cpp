#include "props/program/rules/backward_hooks.h"

#include <algorithm>
#include <set>

namespace zeroproof::program {
namespace {

std::set<int> losses_in(const Value& value, int graph) {
  std::set<int> losses;
  for (const Term& term : value.terms)
    if (term.graph == graph) losses.insert(term.loss);
  return losses;
}

Result<void> run_hook(Walk& walk, const Hook& hook, Frame frame, const std::string& engine) {
  frame.engine = engine;
  auto ran = walk.run_in(std::move(frame), hook.body);
  if (!ran) return ran;
  for (const auto& [name, state] : walk.state().engines)
    if (state.owes != EngineState::Owes::none)
      return no_sense("a hook that leaves engine '" + name + "' with gradients to clear");
  return {};
}

// The loss first, then the modules from the last to the first.
std::vector<const Hook*> hooks_in_order(const Model& model, const Forward& forward,
                                        const ForwardFlow& flow, const std::set<int>& losses) {
  std::vector<const Hook*> hooks;
  for (const Hook& hook : forward.hooks)
    if (hook.at == Hook::At::loss) hooks.push_back(&hook);
  std::vector<const Module*> nodes = nodes_of(model);
  std::ranges::reverse(nodes);
  for (const Module* const node : nodes)
    for (const Hook& hook : forward.hooks) {
      const bool is_here = hook.at != Hook::At::forward && hook.module == node->name;
      if (!is_here) continue;
      const int head = flow.ran.at(node->name);
      if (head == -1 || losses.contains(head)) hooks.push_back(&hook);
    }
  return hooks;
}

}  // namespace

Result<void> run_backward_hooks(Walk& walk, const Value& value, const Frame& frame) {
  std::set<int> seen;
  for (auto term = value.terms.rbegin(); term != value.terms.rend(); ++term) {
    const Graph graph = walk.state().graphs.at(term->graph);
    if (!graph.forward || !seen.insert(term->graph).second) continue;
    const Model& model = walk.state().model(graph.engine);
    for (const Hook* const hook :
         hooks_in_order(model, *graph.forward, *graph.flow, losses_in(value, term->graph))) {
      if (auto ran = run_hook(walk, *hook, frame, graph.engine); !ran) return ran;
      if (walk.is_raising()) return {};
    }
  }
  return {};
}

}  // namespace zeroproof::program
