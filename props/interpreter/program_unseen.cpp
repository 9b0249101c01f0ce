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

bool is_gathering(const Statement& statement) {
  const auto* const block = as<Block>(statement);
  return block && block->kind == Block::Kind::gathered;
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

ExternalUses external_uses_of(const Program& program, const std::string& engine) {
  ExternalUses uses;
  for (const Module* const node : nodes_of(program.model_of(engine))) {
    if (const auto* const external = std::get_if<ExternalUse>(&node->kind))
      uses.read.insert(external->module);
    const auto* const custom = std::get_if<Custom>(&node->kind);
    if (custom && custom->returns_weight) uses.returned.insert(node->name);
  }
  visit_statements(program.body, [&](const Statement& statement) {
    if (const auto* const external = as<RegisterExternal>(statement))
      if (external->engine == engine) uses.read.insert(external->module);
    if (const auto* const call = as<CallModule>(statement))
      if (call->engine == engine && call->uses_weight_alone) uses.read.insert(call->module);
  });
  uses.read.insert(uses.returned.begin(), uses.returned.end());
  return uses;
}

reference::Unseen unseen_of(const Program& program, const EngineSpec& engine) {
  const Body& body = program.body;
  const Model& model = program.model_of(engine.name);
  const ExternalUses uses = external_uses_of(program, engine.name);
  const auto nests = [&](const auto& is_it) {
    return any_statement(body, [&](const Statement& it) { return is_in_hook(it, is_it); });
  };
  const auto wraps = [](const Statement& it) {
    const auto* const forward = as<Forward>(it);
    return forward && forward->around != Forward::Around::none;
  };
  const auto skips_sync = [](const Statement& it) {
    const auto* const block = as<Block>(it);
    return block && block->kind == Block::Kind::no_sync;
  };
  const auto has_module = [&](const auto& is_it) {
    return std::ranges::any_of(nodes_of(model), is_it);
  };
  return {.keeps_graphs = any_statement(body, keeps_graph),
          .gathers_inside = nests(is_gathering),
          .skips_sync = any_statement(body, skips_sync),
          .has_idle_forwards =
              has<Freeze>(body) ||
              any_statement(body, [&](const Statement& it) { return is_idle(program, it); }),
          .reads_elsewhere = !uses.read.empty(),
          .sets_scale = engine.custom_loss_scale.has_value() || has<SetScale>(body),
          .lacks_gradients = false,
          .has_many_outputs = !uses.returned.empty(),
          .marks_tiles =
              has_module([](const Module* it) { return std::holds_alternative<Tiled>(it->kind); }),
          .differentiates_inside =
              program.engines.size() > 1 || any_statement(body, wraps) || nests(calls_engine)};
}

}  // namespace zeroproof::program
