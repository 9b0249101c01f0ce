#include "props/relations/rewrite.h"

#include <algorithm>
#include <utility>

#include "props/interpreter/difference.h"
#include "props/interpreter/program_count.h"
#include "props/program/typestate.h"

namespace zeroproof::relations {

using program::Block;
using program::Body;
using program::Hook;
using program::Model;
using program::Module;
using program::ModuleList;
using program::Program;
using program::SetBoundary;
using program::Statement;
using program::Step;

Body rewritten(const Body& body, const std::function<Body(Statement)>& change) {
  const auto change_inside = [&](auto& kind) {
    if constexpr (requires { kind.hooks; })
      for (Hook& hook : kind.hooks) hook.body = rewritten(hook.body, change);
    if constexpr (requires { kind.body; }) kind.body = rewritten(kind.body, change);
  };
  Body result;
  for (Statement statement : body) {
    std::visit(change_inside, statement.kind);
    for (Statement& made : change(std::move(statement))) result.push_back(std::move(made));
  }
  return result;
}

ModuleList rewritten(const ModuleList& list, const std::function<ModuleList(Module)>& change) {
  const auto change_inside = [&](auto& kind) {
    if constexpr (requires { kind.body; }) kind.body = rewritten(kind.body, change);
  };
  ModuleList result;
  for (Module module : list) {
    std::visit(change_inside, module.kind);
    for (Module& made : change(std::move(module))) result.push_back(std::move(made));
  }
  return result;
}

void rewrite_models(Program& program, const std::function<ModuleList(Module)>& change) {
  for (Model& model : program.models) {
    model.body = rewritten(model.body, change);
    for (ModuleList& head : model.heads) head = rewritten(head, change);
  }
}

std::vector<program::State> states_of(const Program& program) {
  std::vector<program::State> states;
  auto typestate = program::Typestate::of(program);
  if (!typestate) return states;
  for (const Statement& statement : program.body) {
    states.push_back(typestate->state());
    if (!typestate->apply(statement)) return {};
  }
  states.push_back(typestate->state());
  return states;
}

bool has_exact_float32(const Program& program) {
  return program.data.is_exact() && program.config.model_dtype() == DType::float32 &&
         program::tolerance_of(program).wire == DType::float32;
}

bool adds_to_losses(const Program& program) {
  return std::ranges::any_of(program.models,
                             [](const Model& it) { return it.added_to_loss != 0.0; });
}

bool can_scale(const Program& program) {
  const bool is_half = program.config.model_dtype() == DType::float16 ||
                       program::tolerance_of(program).wire == DType::float16;
  const bool is_cast = any_statement(program.body, [](const Statement& it) {
    const auto* const block = std::get_if<Block>(&it.kind);
    return block && block->kind == Block::Kind::other_autocast;
  });
  return program.data.is_exact() && !is_half && !is_cast && !adds_to_losses(program);
}

std::optional<Body> boundaries_alone(const Program& program) {
  const std::vector<program::State> states = states_of(program);
  int nested = 0;
  program::visit_statements(program.body, [&](const Statement& it) {
    nested += std::holds_alternative<Step>(it.kind) ? 1 : 0;
  });
  Body body;
  for (std::size_t i = 0; i < program.body.size() && !states.empty(); ++i) {
    const Statement& statement = program.body[i];
    const auto* const step = std::get_if<Step>(&statement.kind);
    nested -= step ? 1 : 0;
    const bool stays = !step || states[i].is_boundary(states[i].engines.at(step->engine));
    if (stays && !std::holds_alternative<SetBoundary>(statement.kind)) body.push_back(statement);
  }
  if (states.empty() || nested != 0) return std::nullopt;
  return body;
}

bool changes_weights(const Program& program) {
  return any_statement(program.body, [](const Statement& it) {
    const auto* const block = std::get_if<Block>(&it.kind);
    return block &&
           (block->change != Block::Change::none || block->modifier != Block::Modifier::none);
  });
}

}  // namespace zeroproof::relations
