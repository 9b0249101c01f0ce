#include "props/program/state.h"

#include <algorithm>
#include <utility>

namespace zeroproof::program {
namespace {

bool has_graph(const Value& value, int graph) {
  return std::ranges::any_of(value.terms, [&](const Term& term) { return term.graph == graph; });
}

}  // namespace

bool State::is_in(Frame::Kind kind) const {
  return std::ranges::any_of(frames, [&](const Frame& frame) { return frame.kind == kind; });
}

const Frame* State::backward_around() const {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    if (frame->kind == Frame::Kind::backward_hook) return &*frame;
  return nullptr;
}

std::size_t State::hooks_around() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      frames, [](const Frame& frame) { return frame.kind == Frame::Kind::backward_hook; }));
}

bool State::is_boundary(const EngineState& engine) const {
  if (engine.boundary) return *engine.boundary;
  if (!config().managed_gradient_accumulation) return false;
  return (engine.micro_steps + 1) % config().gradient_accumulation_steps == 0;
}

bool State::steps_model(const EngineState& engine) const {
  return is_boundary(engine) || !config().managed_gradient_accumulation;
}

bool State::supports_manual_backward() const {
  return stage > 0 && program->world.autograd == World::Autograd::full;
}

bool State::has_live_graph(const std::string& engine) const {
  for (const auto& [name, value] : values)
    for (const Term& term : value.terms) {
      const Graph& graph = graphs.at(term.graph);
      if (graph.engine == engine && !is_freed(graph, term.loss)) return true;
    }
  return false;
}

void State::drop(const std::string& value) {
  values.erase(value);
  forget_unused_graphs();
}

void State::drop_graphs_of(const std::string& value) {
  const Value dropped = values.at(value);
  std::erase_if(values, [&](const auto& named) {
    return named.first == value || std::ranges::any_of(dropped.terms, [&](const Term& term) {
             return has_graph(named.second, term.graph);
           });
  });
  forget_unused_graphs();
}

void State::define(const std::string& name, Value value) {
  values[name] = std::move(value);
  forget_unused_graphs();
}

void State::forget_unused_graphs() {
  std::erase_if(graphs, [&](const auto& graph) {
    const bool is_used = std::ranges::any_of(
        values, [&](const auto& named) { return has_graph(named.second, graph.first); });
    const auto engine = engines.find(graph.second.engine);
    const bool is_left = !is_used && !graph.second.is_trunk_freed && engine != engines.end();
    if (is_left) engine->second.has_left_graph = true;
    return !is_used;
  });
}

bool is_freed(const Graph& graph, int loss) {
  return graph.is_trunk_freed || graph.freed_losses.contains(loss);
}

}  // namespace zeroproof::program
