#include "props/hunt/applicability.h"

#include <algorithm>
#include <functional>
#include <span>
#include <variant>

#include "props/interpreter/program_count.h"

namespace zeroproof::hunt {
namespace {

using program::any_statement;
using program::Backward;
using program::Block;
using program::Body;
using program::CallModule;
using program::Catch;
using program::Checkpoint;
using program::Custom;
using program::Experts;
using program::ExternalUse;
using program::ForeignBackward;
using program::Forward;
using program::Freeze;
using program::has;
using program::Hook;
using program::Load;
using program::Module;
using program::OutOfMemory;
using program::Program;
using program::Raise;
using program::Recreate;
using program::RegisterExternal;
using program::Resume;
using program::SetLeaf;
using program::SetScale;
using program::Shared;
using program::Statement;
using program::Sum;
using program::TemporaryEngine;
using program::Tied;
using program::Tiled;
using program::Transform;
using program::Unused;
using program::ZeroGrad;

template <class Kind>
bool has_module(const Program& program, const std::function<bool(const Kind&)>& is_it) {
  return any_module(program, [&](const Module& node) {
    const auto* const kind = std::get_if<Kind>(&node.kind);
    return kind && is_it(*kind);
  });
}

template <class Kind>
bool has_module(const Program& program) {
  return has_module<Kind>(program, [](const Kind&) { return true; });
}

// --- what a program does ------------------------------------------------------------------------

bool differentiates_inside(const Program& program) {
  return any_statement(program.body, [](const Statement& it) {
    const auto* const forward = std::get_if<Forward>(&it.kind);
    return forward && std::ranges::any_of(forward->hooks, [](const Hook& hook) {
             return has<Backward>(hook.body);
           });
  });
}

bool wraps_forwards(const Program& program) {
  return any_statement(program.body, [](const Statement& it) {
    const auto* const forward = std::get_if<Forward>(&it.kind);
    return forward && forward->around != Forward::Around::none;
  });
}

// Some gradient comes in several parts, each of which an epilogue may follow.
bool completes_often(const Program& program) {
  const bool has_parts =
      has_module<Checkpoint>(program, [](const Checkpoint& it) { return it.is_reentrant; }) ||
      has_module<Experts>(program) || program.config.stage3_module_granularity_threshold != 0;
  const bool is_used_again = has_module<Shared>(program) || has_module<Tied>(program) ||
                             has_module<ExternalUse>(program) || has<Sum, CallModule>(program.body);
  const bool is_part = any_statement(program.body, [](const Statement& it) {
    const auto* const call = std::get_if<CallModule>(&it.kind);
    return call && call->in_checkpoint;
  });
  return has_module<Tiled>(program) || wraps_forwards(program) || differentiates_inside(program) ||
         is_part || (has_parts && is_used_again);
}

bool may_be_refused_late(const Program& program) {
  return any_statement(program.body, [](const Statement& it) {
    const auto* const backward = std::get_if<Backward>(&it.kind);
    return backward && backward->engine.empty();
  });
}

bool gathers_around_backwards(const Program& program) {
  return any_statement(program.body, [](const Statement& it) {
    const auto* const block = std::get_if<Block>(&it.kind);
    return block && block->kind == Block::Kind::gathered && has<Backward>(block->body);
  });
}

bool moves_scale_otherwise(const Program& program) {
  return has<Load, Resume, SetScale>(program.body);
}

bool has_autocast(const Program& program) {
  return program.config.torch_autocast.enabled;
}

bool returns_weights(const Program& program) {
  return has_module<Custom>(program, [](const Custom& it) { return it.returns_weight; });
}

bool runs_short(const Program& program) {
  return has<OutOfMemory>(program.body);
}

// What was reduced is dropped before anything uses it.
bool drops_reductions(const Program& program) {
  const auto has_hooks = [](const Statement& it) {
    const auto* const forward = std::get_if<Forward>(&it.kind);
    return forward && !forward->hooks.empty();
  };
  return has<Catch, Raise, OutOfMemory, ForeignBackward, ZeroGrad>(program.body) ||
         any_statement(program.body, has_hooks);
}

// With several ranks, one may own no part of what a window reduces, and have no use for it.
bool may_reduce_for_others(const Program& program) {
  const bool has_heads =
      std::ranges::any_of(program.models, [](const auto& it) { return it.losses() > 1; });
  const bool has_skips = any_statement(program.body, [](const Statement& it) {
    const auto* const forward = std::get_if<Forward>(&it.kind);
    return forward && !forward->skips.empty();
  });
  return program.world.ranks > 1 && (has_heads || has_skips || has_module<Experts>(program) ||
                                     has_module<Unused>(program) || has<Freeze>(program.body));
}

// Two flat buffers take turns.
bool has_two_buffers(const Program& program, const ZeroConfig& config) {
  const bool is_alone = program.engines.size() == 1 && !has<TemporaryEngine>(program.body);
  return config.has_overlap_comm() && (config.stage == 1 || config.stage == 2) &&
         config.contiguous_gradients && is_alone && !drops_reductions(program) &&
         !may_reduce_for_others(program);
}

// One that has no room in a flat buffer is reduced where it is.
std::int64_t largest_parameter(const program::RunnableProgram& runnable) {
  const std::string& engine = runnable.program().engines.front().name;
  const program::TreeModule module(runnable.program().model_of(engine),
                                   runnable.data().table(engine), {});
  std::int64_t largest = 0;
  for (const nn::NamedParameter& named : module.named_parameters())
    largest = std::max(largest, named.tensor.numel());
  return largest;
}

// Contexts of the user and reads past a module gather as well, and the host does not wait for them.
bool gathers_for_modules(const Program& program, const ZeroConfig& config) {
  const bool is_asked = any_statement(program.body, [](const Statement& it) {
    const auto* const block = std::get_if<Block>(&it.kind);
    return block && block->kind == Block::Kind::gathered;
  });
  return config.stage == 3 && !program.world.skips_frames && !is_asked &&
         !has<CallModule, Transform>(program.body) && !has_module<ExternalUse>(program) &&
         !returns_weights(program);
}

// The order that was recorded is not the order that comes.
bool changes_order(const Program& program) {
  const auto skips = [](const Statement& it) {
    const auto* const forward = std::get_if<Forward>(&it.kind);
    return forward && (!forward->skips.empty() || forward->mode == Forward::Mode::no_grad);
  };
  return returns_weights(program) || has_module<ExternalUse>(program) ||
         has<SetLeaf, RegisterExternal, Transform, CallModule, OutOfMemory>(program.body) ||
         any_statement(program.body, skips);
}

// A monitor, and the programs about which it does not speak.
struct Exclusion {
  std::string_view property;
  bool (*is_out)(const Program& program);
};

constexpr Exclusion kExclusions[] = {
    {"P1", differentiates_inside},  // which has an epilogue of its own
    {"P1", wraps_forwards},
    {"P2", differentiates_inside},
    {"P2", wraps_forwards},
    {"P14", differentiates_inside},
    {"P17", wraps_forwards},  // the backward began without the engine
    {"P42", completes_often},
    {"P58", moves_scale_otherwise},
    {"P62", has_autocast},  // the cast is differentiated after the module
    {"P63", gathers_around_backwards},
    {"P65", runs_short},
    {"P68", changes_order},
    {"P69", changes_order},
    {"P78", runs_short},
    {"R20", may_be_refused_late},
};

}  // namespace

bool is_applicable(const Program& program, std::string_view property) {
  // Two engines of one name, which a record takes for one.
  if (has<Recreate>(program.body) && property.front() == 'P') return property == "P26";
  return std::ranges::none_of(kExclusions, [&](const Exclusion& it) {
    return it.property == property && it.is_out(program);
  });
}

OverlapRules overlap_rules_of(const program::RunnableProgram& runnable) {
  const Program& program = runnable.program();
  const ZeroConfig& config = runnable.segments().back().config;
  return {.judges_reductions = has_two_buffers(program, config) &&
                               largest_parameter(runnable) <= config.reduce_bucket_size,
          .judges_host = config.stage == 3,
          .judges_gathers = gathers_for_modules(program, config),
          .engines = static_cast<int>(program.engines.size())};
}

}  // namespace zeroproof::hunt
