// Relations whose other program has other models.
#include <algorithm>
#include <array>
#include <utility>

#include "props/interpreter/program_count.h"
#include "props/relations/relation_table.h"
#include "props/relations/rewrite.h"

namespace zeroproof::relations {
namespace {

using program::Checkpoint;
using program::Custom;
using program::Data;
using program::Forward;
using program::Linear;
using program::Model;
using program::Module;
using program::ModuleList;
using program::Program;
using program::Statement;
using program::Tiled;
using program::Trained;
using program::Unused;

constexpr const char* kAdded = "added";

// At the end, so that the weights before it begin as they did.
void append(Model& model, Module module) {
  ModuleList& last = model.heads.empty() ? model.body : model.heads.back();
  last.push_back(std::move(module));
}

Module added_custom(Trained trained) {
  return {kAdded, Custom{.shape = {3}, .trained = trained}};
}

bool is_leaf(const Module& module) {
  return std::holds_alternative<Linear>(module.kind) || std::holds_alternative<Custom>(module.kind);
}

bool has_checkpoints(const Program& program) {
  return any_module(program,
                    [](const Module& it) { return std::holds_alternative<Checkpoint>(it.kind); });
}

// Of the other kind, or none, as the data's seed says.
ModuleList changed_checkpoint(Module module, bool removes) {
  auto* const checkpoint = std::get_if<Checkpoint>(&module.kind);
  if (!checkpoint) return {std::move(module)};
  if (removes) return checkpoint->body;
  checkpoint->is_reentrant = !checkpoint->is_reentrant;
  return {std::move(module)};
}

}  // namespace

std::optional<Other> with_other_checkpoints(const Program& program) {
  const bool wraps = any_statement(program.body, [](const Statement& it) {
    const auto* const forward = std::get_if<Forward>(&it.kind);
    return forward && forward->around != Forward::Around::none;
  });
  if (!has_checkpoints(program) && !wraps) return std::nullopt;
  Other other{program};
  const bool removes = program.data.seed % 2 == 0;
  rewrite_models(other.program,
                 [&](Module module) { return changed_checkpoint(std::move(module), removes); });
  other.program.body = rewritten(program.body, [&](Statement statement) {
    auto* const forward = std::get_if<Forward>(&statement.kind);
    if (forward && forward->around != Forward::Around::none)
      forward->around = removes ? Forward::Around::none
                        : forward->around == Forward::Around::reentrant
                            ? Forward::Around::non_reentrant
                            : Forward::Around::reentrant;
    return program::Body{std::move(statement)};
  });
  return other;
}

std::optional<Other> without_tiles(const Program& program) {
  const bool has_tiles =
      any_module(program, [](const Module& it) { return std::holds_alternative<Tiled>(it.kind); });
  if (!has_tiles || program.data.mode != Data::Mode::exact) return std::nullopt;
  Other other{program};
  rewrite_models(other.program, [](Module module) {
    auto* const tiled = std::get_if<Tiled>(&module.kind);
    return tiled ? std::move(tiled->body) : ModuleList{std::move(module)};
  });
  return other;
}

std::optional<Other> with_frozen_parameter(const Program& program) {
  Other other{program};
  for (Model& model : other.program.models) append(model, added_custom(Trained::frozen));
  return other;
}

std::optional<Other> with_uncalled_module(const Program& program) {
  Other other{program};
  for (Model& model : other.program.models)
    append(model, {"uncalled", Unused{.body = {added_custom(Trained::all)}}});
  return other;
}

// The first two neighbours that are called one after the other.
std::optional<Other> with_reordered_modules(const Program& program) {
  if (program.data.mode != Data::Mode::exact) return std::nullopt;
  Other other{program};
  bool is_changed = false;
  for (Model& model : other.program.models) {
    const auto at = std::ranges::adjacent_find(
        model.body, [](const Module& a, const Module& b) { return is_leaf(a) && is_leaf(b); });
    if (at == model.body.end()) continue;
    std::iter_swap(at, at + 1);
    is_changed = true;
  }
  if (!is_changed) return std::nullopt;
  return other;
}

}  // namespace zeroproof::relations
