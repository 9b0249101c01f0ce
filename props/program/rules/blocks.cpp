// Blocks around statements, and what is thrown through them.
#include <algorithm>

#include "props/program/model_traits.h"
#include "props/program/program_walk.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

using FrameKind = Frame::Kind;
using Kind = Block::Kind;

Verdict done(const Result<void>& result, const Expectation& expectation = {}) {
  if (!result) return tl::unexpected(result.error());
  return expectation;
}

// --- no_sync and coalesce_grad_reduction --------------------------------------------------------

std::string delay_problem(const State& state, const EngineState& engine) {
  return first_broken({{state.backward_around() || state.is_in(FrameKind::forward_hook),
                        "a block that begins in the middle of a pass"},
                       {engine.tiled.has_value(), "a block around the backward of tiles alone"}});
}

std::string delay_end_problem(const EngineState& engine) {
  return first_broken({{engine.tiled.has_value(), "a block around the forward of tiles alone"},
                       {engine.has_failed_in_block, "a block whose last backward fails"}});
}

bool is_left_to_stage1(const State& state, const EngineState& engine) {
  return state.stage == 1 && state.config().has_overlap_comm() && state.is_boundary(engine);
}

Verdict check_no_sync(Walk& walk, const Block& block, EngineState& engine) {
  State& state = walk.state();
  if (state.stage >= 2 || engine.is_in_no_sync || engine.is_coalescing)
    return refused_with(EngineErrorId::no_sync_not_allowed);
  if (const std::string why = delay_problem(state, engine); !why.empty()) return no_sense(why);
  engine.is_in_no_sync = true;
  const auto ran = walk.run_in({.kind = FrameKind::no_sync, .engine = block.engine}, block.body);
  engine.is_in_no_sync = false;
  if (const std::string why = delay_end_problem(engine); ran && !why.empty()) return no_sense(why);
  // Open: with overlap, stage 1 reduces what a block at a boundary has left by itself.
  if (ran && engine.window.has_local && is_left_to_stage1(state, engine))
    return no_sense("no_sync of stage 1 with overlap at a boundary");
  return done(ran);
}

Verdict check_coalesce(Walk& walk, const Block& block, EngineState& engine) {
  State& state = walk.state();
  if (!state.config().managed_gradient_accumulation || state.stage == 0 || engine.is_in_no_sync ||
      engine.is_coalescing)
    return refused_with(EngineErrorId::coalesce_not_allowed);
  if (const std::string why = delay_problem(state, engine); !why.empty()) return no_sense(why);
  engine.is_coalescing = true;
  const auto ran = walk.run_in({.kind = FrameKind::coalesce, .engine = block.engine}, block.body);
  engine.is_coalescing = false;
  if (const std::string why = delay_end_problem(engine); ran && !why.empty()) return no_sense(why);
  engine.window.has_local = false;
  return done(ran);
}

// --- GatheredParameters -------------------------------------------------------------------------

// Modules whose own parameters it names; an error for a name that has none.
Result<std::set<std::string>> gathered_modules(const State& state, const Block& block) {
  std::set<std::string> modules;
  const Model& model = state.model(block.engine);
  for (const Module* const node : nodes_of(model)) {
    const bool is_owner = std::holds_alternative<Linear>(node->kind) ||
                          std::holds_alternative<Custom>(node->kind) ||
                          std::holds_alternative<OwnWeight>(node->kind) ||
                          std::holds_alternative<Experts>(node->kind);
    if (is_owner && block.modules.empty()) modules.insert(node->name);
    if (is_owner && std::ranges::find(block.modules, node->name) != block.modules.end())
      modules.insert(node->name);
  }
  for (const std::string& name : block.modules)
    if (!modules.contains(name)) return no_sense("no parameters of '" + name + "' to gather");
  return modules;
}

bool changes(const Block& block) {
  return block.change == Block::Change::by_modifier || block.change == Block::Change::by_all;
}

std::string change_problem(const State& state, const EngineState& engine, const Block& block) {
  const bool is_named = block.modifier != Block::Modifier::none;
  const bool is_partitioned = state.stage == 3;
  const bool is_checked = state.config().enable_sanity_checks && is_partitioned;
  const bool is_inside = state.backward_around() != nullptr;
  const bool is_alone = block.body.empty() && !is_inside && !state.has_live_graph(block.engine);
  switch (block.change) {
    case Block::Change::none:
      return {};
    case Block::Change::by_modifier:
    case Block::Change::by_all:
      return first_broken(
          {{!is_named, "a change that no rank announces"},
           {!is_inside && engine.window.has_gradients, "a change of weights inside a window"},
           {!raises_alone(block.body), "a change that ranks see before all have it"},
           {state.program->world.skips_frames && !block.body.empty(),
            "a change to drop from weights that a graph may claim"},
           {engine.window.has_spike, "a change of weights that no step ends"},
           {!engine.frozen.empty(), "a change of weights while a module is frozen"}});
    case Block::Change::unannounced:
      return first_broken({{is_named || !is_checked, "a change that no check looks for"},
                           {state.program->world.skips_frames && engine.has_left_graph,
                            "a change to drop from weights that a graph may claim"},
                           {!is_alone, "more than a change that is refused"}});
    case Block::Change::moves:
      return first_broken(
          {{!is_named || !is_partitioned || state.engines.size() > 1,
            "a parameter that no rank takes over leaves its device"},
           {state.program->world.skips_frames || !is_alone, "more than a move that is refused"}});
    case Block::Change::holds_nan:
      return first_broken(
          {{is_named || !is_checked, "a NaN that no check looks for"},
           {engine.window.has_gradients || !is_alone, "no numbers in the middle of a window"}});
  }
  return {};
}

std::string context_problem(const State& state, const EngineState& engine, const Block& block) {
  const ZeroConfig& config = state.config();
  const bool is_partitioned = state.stage == 3;
  const bool is_in_forward = state.is_in(FrameKind::forward_hook);
  const bool is_inside = state.backward_around() != nullptr;
  const ModelTraits traits = traits_of(state.model(block.engine));
  const bool is_rounded = config.torch_autocast.enabled && is_partitioned;
  return first_broken(
      {{engine.is_spoiled, "a context of weights that are no numbers"},
       {engine.tiled.has_value(), "a context before the backward of tiles"},
       {is_in_forward && is_partitioned &&
            (!state.program->world.skips_frames || config.torch_autocast.enabled),
        "a context that gives up what modules around it use"},
       {is_in_forward && changes(block), "a change of weights in the middle of a forward"},
       {is_rounded &&
            (block.change != Block::Change::none || config.stage3_param_persistence_threshold != 0),
        "autocast gathers weights rounded"},
       {is_rounded && (is_inside || !block.body.empty()) && !reads_alone(block.body),
        "autocast gathers weights rounded, and more than a look"},
       {is_inside && is_partitioned &&
            (!config.memory_efficient_linear || traits.has_checkpoints || traits.returns_weights),
        "a context that gives up what a backward around it has saved"},
       {block.change == Block::Change::none && block.modifier != Block::Modifier::none &&
            !is_partitioned,
        "a rank that all take over where weights are whole"}});
}

// Its refusal where it ends.
Expectation refusal_of(const Block& block) {
  if (block.change == Block::Change::unannounced)
    return refused_with(EngineErrorId::modified_without_modifier_rank);
  if (block.change == Block::Change::moves)
    return refused_with(EngineErrorId::gathered_parameter_left_device);
  return {};
}

void change_weights(const State& state, EngineState& engine, const Block& block) {
  engine.has_changed_weights = true;
  if (state.backward_around()) return;  // past the autograd
  engine.all_changed_them = block.change == Block::Change::by_all;
  renew_weights(engine);
}

Verdict check_gathered(Walk& walk, const Block& block, EngineState& engine) {
  State& state = walk.state();
  const auto modules = gathered_modules(state, block);
  if (!modules) return tl::unexpected(modules.error());
  const bool overlaps = std::ranges::any_of(
      *modules, [&](const std::string& name) { return engine.gathered.contains(name); });
  for (const std::string& why :
       {context_problem(state, engine, block), change_problem(state, engine, block)})
    if (!why.empty()) return no_sense(why);
  if (overlaps && state.stage == 3) return refused_with(EngineErrorId::gather_contexts_overlap);
  const std::set<std::string> outer = engine.gathered;
  engine.gathered.insert(modules->begin(), modules->end());
  const auto ran = walk.run_in({.kind = FrameKind::gathered, .engine = block.engine}, block.body);
  engine.gathered = outer;
  if (!ran) return tl::unexpected(ran.error());
  if (changes(block)) {
    if (walk.is_raising() && state.stage != 3) return no_sense("a change that an exception keeps");
    if (!walk.is_raising()) change_weights(state, engine, block);
    for (auto& [number, graph] : state.graphs)
      if (graph.engine == block.engine && engine.all_changed_them)
        graph.is_outdated_by_change = block.modules.empty();
  }
  return refusal_of(block);
}

// --- the others ---------------------------------------------------------------------------------

Verdict check_autocast(Walk& walk, const Block& block) {
  State& state = walk.state();
  const bool is_own = state.config().torch_autocast.enabled;
  const std::string why = first_broken(
      {{is_own != (block.kind == Kind::other_autocast), "an autocast region of no use"},
       {state.program->world.skips_frames, "an autocast region around skipped frames"},
       {state.program->data.mode == Data::Mode::magnitude,
        "an autocast region around gradients at their limits"},
       {state.backward_around() || state.is_in(FrameKind::forward_hook),
        "an autocast region in the middle of a pass"}});
  if (!why.empty()) return no_sense(why);
  return done(walk.run_in({.kind = FrameKind::autocast, .engine = block.engine}, block.body));
}

// --- a device without memory --------------------------------------------------------------------

// What is done again: an evaluation, a context, getters, or one forward and its backward.
struct Again {
  int trained = 0;
  int evaluated = 0;
  int differentiated = 0;
  int contexts = 0;
  int getters = 0;
  bool is_plain = true;

  explicit Again(const Body& body) {
    for (const Statement& statement : body) add(statement);
  }

 private:
  void add(const Statement& statement) {
    if (const auto* const forward = std::get_if<Forward>(&statement.kind)) {
      ++(forward->mode == Forward::Mode::train ? trained : evaluated);
      is_plain =
          is_plain && forward->hooks.empty() && forward->around == Forward::Around::none &&
          std::ranges::none_of(forward->skips, [](const Skip& it) { return it.rank.has_value(); });
    } else if (const auto* const backward = std::get_if<Backward>(&statement.kind)) {
      ++differentiated;
      is_plain = is_plain && !backward->retain_graph && !backward->create_graph;
    } else if (const auto* const block = std::get_if<Block>(&statement.kind)) {
      ++contexts;
      is_plain = is_plain && block->kind == Kind::gathered && reads_alone(block->body) &&
                 block->change == Block::Change::none;
    } else if (std::holds_alternative<Inspect>(statement.kind)) {
      ++getters;
    } else if (!std::holds_alternative<Sum>(statement.kind) &&
               !std::holds_alternative<Scale>(statement.kind)) {
      is_plain = false;
    }
  }
};

// In stages 0 and 1, where a window ends, earlier sums have the failed backward's gradients.
bool may_reduce_sums(const State& state, const EngineState& engine) {
  return state.stage <= 1 && state.config().managed_gradient_accumulation &&
         state.is_boundary(engine);
}

std::string shortage_problem(const State& state, const OutOfMemory& shortage) {
  if (state.engines.size() != 1) return "a shortage beside several engines";
  const auto& [name, engine] = *state.engines.begin();
  const ModelTraits traits = traits_of(state.model(name));
  const Again again(shortage.body);
  const bool is_training = again.trained + again.differentiated > 0;
  const bool is_alone =
      (is_training ? 1 : 0) + again.evaluated + again.contexts + again.getters == 1;
  const bool differentiates = again.differentiated > 0;
  const bool must_clear = differentiates && may_reduce_sums(state, engine);
  return first_broken(
      {{!state.is_at_top(), "a shortage in the middle of something"},
       {traits.has_tiles || state.program->world.skips_frames, "a shortage of tiles or frames"},
       {state.ranks > 1 && traits.has_experts, "a shortage that ranks do not share"},
       {state.program->world.tensor > 1, "a shortage of replicas"},
       {!again.is_plain || !is_alone, "more than can be done again"},
       {again.trained > 1 || again.differentiated > 1 || again.differentiated > again.trained,
        "more than one forward and its backward that is done again"},
       {again.contexts > 0 && state.stage != 3, "a context that makes no allocation"},
       {differentiates && state.ranks > 1 && (state.stage == 1 || state.stage == 2),
        "a backward that fails on some ranks alone"},
       {shortage.clears != must_clear, "gradients that are cleared, or not, after a shortage"},
       {must_clear && engine.window.has_gradients, "a window that cannot be taken back"},
       {shortage.allocation < 0, "an allocation that is not there"}});
}

}  // namespace

void open_block(State& state, const Block& block) {
  constexpr FrameKind kFrames[] = {FrameKind::no_sync,  FrameKind::coalesce, FrameKind::gathered,
                                   FrameKind::autocast, FrameKind::autocast, FrameKind::autocast};
  EngineState& engine = state.engines.at(block.engine);
  engine.is_in_no_sync = engine.is_in_no_sync || block.kind == Kind::no_sync;
  engine.is_coalescing = engine.is_coalescing || block.kind == Kind::coalesce;
  if (block.kind == Kind::gathered)
    if (const auto modules = gathered_modules(state, block))
      engine.gathered.insert(modules->begin(), modules->end());
  state.frames.push_back(
      {.kind = kFrames[static_cast<std::size_t>(block.kind)], .engine = block.engine});
}

Verdict check(Walk& walk, const Block& block) {
  const auto found = engine_of(walk.state(), block.engine);
  if (!found) return tl::unexpected(found.error());
  switch (block.kind) {
    case Kind::no_sync:
      return check_no_sync(walk, block, **found);
    case Kind::coalesce:
      return check_coalesce(walk, block, **found);
    case Kind::gathered:
      return check_gathered(walk, block, **found);
    case Kind::autocast:
    case Kind::other_autocast:
      return check_autocast(walk, block);
    case Kind::capture:
      break;
  }
  if (walk.state().backward_around() || walk.state().is_in(FrameKind::forward_hook))
    return no_sense("a capture in the middle of a pass");
  return refused_otherwise();
}

Verdict check(Walk& walk, const Raise&) {
  if (!walk.state().is_in(FrameKind::caught)) return no_sense("an exception that is not caught");
  walk.raise();
  return Expectation{};
}

Verdict check(Walk& walk, const Catch& caught) {
  const auto ran = walk.run_in({.kind = FrameKind::caught}, caught.body);
  walk.catch_raised();
  return done(ran);
}

Verdict check(Walk& walk, const OutOfMemory& shortage) {
  if (const std::string why = shortage_problem(walk.state(), shortage); !why.empty())
    return no_sense(why);
  return done(walk.run_in({.kind = FrameKind::out_of_memory}, shortage.body));
}

}  // namespace zeroproof::program
