#include "props/interpreter/program_unseen.h"

#include <algorithm>

#include "props/interpreter/program_count.h"
#include "props/program/forward_flow.h"

namespace zeroproof::program {
namespace {

bool keeps_graph(const Statement& statement) {
  const auto* const backward = as<Backward>(statement);
  return backward && (backward->retain_graph || backward->create_graph);
}

// Whether some hook of a forward has such a statement.
bool is_in_hook(const Statement& statement, const std::function<bool(const Statement&)>& is_it) {
  const auto* const forward = as<Forward>(statement);
  return forward && std::ranges::any_of(forward->hooks, [&](const Hook& hook) {
           return any_statement(hook.body, is_it);
         });
}

bool calls_engine(const Statement& statement) {
  return !std::holds_alternative<Raise>(statement.kind) &&
         !std::holds_alternative<Catch>(statement.kind);
}

// With as few modules as some rank runs.
bool may_lack_graph(const Model& model, const Forward& forward) {
  FlowOptions options{.inputs_need_grad = forward.inputs_need_grad};
  for (const Skip& skip : forward.skips) options.skipped.insert(skip.module);
  const ForwardFlow flow = flow_of(model, options);
  return std::ranges::none_of(flow.losses, &Reach::has_graph);
}

bool is_idle(const Program& program, const Statement& statement) {
  const auto* const forward = as<Forward>(statement);
  if (!forward) return std::holds_alternative<Transform>(statement.kind);
  return forward->mode == Forward::Mode::no_grad || forward->around == Forward::Around::reentrant ||
         may_lack_graph(program.model_of(forward->engine), *forward);
}

}  // namespace

std::set<std::string> returned_weights_of(const Model& model) {
  std::set<std::string> returned;
  for (const Module* const node : nodes_of(model)) {
    const auto* const custom = std::get_if<Custom>(&node->kind);
    if (custom && custom->returns_weight) returned.insert(node->name);
  }
  return returned;
}

// Contexts, no_sync and uses of other modules' parameters have events of their own.
reference::Unseen unseen_of(const Program& program, const EngineSpec& engine) {
  const Body& body = program.body;
  const Model& model = program.model_of(engine.name);
  const auto nests = [&](const auto& is_it) {
    return any_statement(body, [&](const Statement& it) { return is_in_hook(it, is_it); });
  };
  const auto wraps = [](const Statement& it) {
    const auto* const forward = as<Forward>(it);
    return forward && forward->around != Forward::Around::none;
  };
  const auto has_module = [&](const auto& is_it) {
    return std::ranges::any_of(nodes_of(model), is_it);
  };
  return {.keeps_graphs = any_statement(body, keeps_graph),
          .gathers_inside = false,
          .skips_sync = false,
          .has_idle_forwards =
              has<Freeze>(body) ||
              any_statement(body, [&](const Statement& it) { return is_idle(program, it); }),
          .reads_elsewhere = false,
          .sets_scale = engine.custom_loss_scale.has_value() || has<SetScale>(body),
          .lacks_gradients = false,
          .has_many_outputs = !returned_weights_of(model).empty(),
          .sets_leaves = has<SetLeaf>(body),
          .marks_tiles =
              has_module([](const Module* it) { return std::holds_alternative<Tiled>(it->kind); }),
          .differentiates_inside =
              program.engines.size() > 1 || any_statement(body, wraps) || nests(calls_engine)};
}

}  // namespace zeroproof::program
