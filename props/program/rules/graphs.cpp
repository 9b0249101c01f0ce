// What makes graphs and values, and what ends them.
#include <algorithm>

#include "props/program/model_traits.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

using FrameKind = Frame::Kind;

bool is_name(const std::string& name) {
  return !name.empty() && name.find('.') == std::string::npos;
}

bool raises(const Body& body) {
  return !body.empty() && std::holds_alternative<Raise>(body.back().kind);
}

FlowOptions flow_options(const EngineState& engine, const Forward& forward) {
  FlowOptions options{.frozen = engine.frozen,
                      .inputs_need_grad = forward.inputs_need_grad,
                      .expert = forward.expert};
  // Where ranks differ, each has a graph: rules ask for what all of them have.
  for (const Skip& skip : forward.skips) options.skipped.insert(skip.module);
  return options;
}

bool is_train(const Forward& forward) {
  return forward.mode == Forward::Mode::train;
}

// --- a forward ----------------------------------------------------------------------------------

// One inside a backward.
std::string nested_problem(const State& state, const Forward& forward) {
  const Frame* const around = state.backward_around();
  if (!around || !is_train(forward)) return {};
  const bool is_own = around->engines.contains(forward.engine) || around->managed == forward.engine;
  const ModelTraits traits = traits_of(state.model(forward.engine));
  return first_broken(
      {{around->managed.empty(), "a backward inside one that no engine runs"},
       {!state.config().managed_gradient_accumulation,
        "a backward inside another without managed accumulation"},
       {is_own && state.stage == 3, "a graph of partitioned parameters in their backward"},
       {is_own && (traits.has_checkpoints || traits.has_tiles),
        "a backward inside another of the same checkpoints"},
       {is_own && around->keeps_graph, "a backward inside another that keeps its graph"},
       {is_own && state.config().torch_autocast.enabled &&
            state.config().torch_autocast.dtype == DType::float16,
        "two gradients at once need more bits than float16 has"}});
}

std::string around_problem(const State& state, const Forward& forward) {
  if (forward.around == Forward::Around::none) return {};
  const Model& model = state.model(forward.engine);
  const ModelTraits traits = traits_of(model);
  const bool is_hooked = std::ranges::any_of(
      forward.hooks, [](const Hook& hook) { return hook.body.size() != 1 || !raises(hook.body); });
  return first_broken(
      {{!is_train(forward), "a checkpoint around a forward without gradients"},
       {state.stage == 3, "a checkpoint of the user around a forward of stage 3"},
       {!forward.inputs_need_grad, "a checkpoint of inputs that need no gradient"},
       {state.engines.size() > 1 || model.losses() > 1, "a checkpoint around several losses"},
       {model.container != Container::tensors || model.has_constant_output ||
            model.returns_activations,
        "a checkpoint around a forward with other outputs"},
       {traits.has_tiles || traits.has_experts, "a checkpoint around tiles or experts"},
       {is_hooked || !state.is_at_top(), "a checkpoint that runs hooks again"}});
}

std::string skip_problem(const State& state, const Forward& forward, const Skip& skip) {
  const Model& model = state.model(forward.engine);
  const Module* const module = find_module(model, skip.module);
  if (!module) return "a module that is not there is skipped";
  if (std::holds_alternative<Tiled>(module->kind) || std::holds_alternative<Unused>(module->kind) ||
      std::holds_alternative<Experts>(module->kind) ||
      std::holds_alternative<OwnWeight>(module->kind))
    return "a module that cannot be skipped";
  if (!skip.rank) return {};
  const bool is_use = std::holds_alternative<ExternalUse>(module->kind);
  const bool is_rank = *skip.rank >= 0 && *skip.rank < state.ranks;
  return first_broken({{!is_rank, "a rank that is not there skips a module"},
                       {state.program->world.tensor > 1, "one replica alone skips a module"},
                       {!is_use && state.stage != 0, "ranks that take different branches"},
                       {!forward.hooks.empty() || forward.skips.size() > 1 || forward.spike,
                        "ranks that take different branches, and more"},
                       {is_use && !may_be_read_by_some(state, forward, *module),
                        "ranks that gather in different orders"}});
}

std::string spike_problem(const State& state, const EngineState& engine, const Forward& forward) {
  if (!forward.spike) return {};
  const Module* const module = find_module(state.model(forward.engine), forward.spike->module);
  const bool is_owner = module && (std::holds_alternative<Linear>(module->kind) ||
                                   std::holds_alternative<Custom>(module->kind));
  const auto* const custom = module ? std::get_if<Custom>(&module->kind) : nullptr;
  const bool is_checked = checks_overflow(state.config(), engine.scaler);
  return first_broken(
      {{!is_owner, "a spike of what is no Linear or Custom module"},
       {custom && custom->returns_weight, "a spike of a module that returns its weight"},
       {!is_train(forward), "a spike of a forward without gradients"},
       {forward.spike->rank < 0 || forward.spike->rank >= state.world_size(),
        "a spike of a rank that is not there"},
       {engine.has_changed_weights, "a change of weights that no step ends"},
       {!engine.frozen.empty(), "a spike while a module is frozen"},
       {state.config().stage3_module_granularity_threshold > 0, "a spike in a leaf module"},
       {state.program->world.tensor > 1 && !is_checked, "a spike that one replica alone sees"},
       {!state.program->data.is_exact(), "a spike among numbers at their limits"}});
}

std::string frozen_problem(const EngineState& engine, const Forward& forward) {
  if (engine.frozen.empty()) return {};
  return first_broken({{!forward.hooks.empty() || forward.around != Forward::Around::none,
                        "hooks of a forward while a module is frozen"}});
}

std::string leaf_problem(const State& state, const Forward& forward) {
  if (!is_train(forward)) return {};
  return first_broken(
      {{state.config().stage3_module_granularity_threshold > 0 && !forward.inputs_need_grad,
        "a leaf module whose input needs no gradient"}});
}

std::string frames_problem(const State& state, const Forward& forward) {
  if (!state.program->world.skips_frames) return {};
  const bool is_hooked = std::ranges::any_of(
      forward.hooks, [](const Hook& hook) { return hook.at != Hook::At::forward; });
  return first_broken({{is_hooked || forward.around != Forward::Around::none,
                        "a hook of a backward over skipped frames"}});
}

std::string tiles_problem(const State& state, const Forward& forward) {
  if (!traits_of(state.model(forward.engine)).has_tiles) return {};
  const bool is_thrown_in_forward = std::ranges::any_of(
      forward.hooks, [](const Hook& hook) { return hook.at == Hook::At::forward; });
  return first_broken({{!is_train(forward), "tiles of a forward that is not trained"},
                       {is_thrown_in_forward, "a hook of a forward that runs tiles"},
                       {state.backward_around() != nullptr, "tiles inside a backward"}});
}

std::string forward_problem(const State& state, const EngineState& engine, const Forward& forward) {
  const Frame* const nested = state.backward_around();
  if (std::string problem = first_broken(
          {{!is_name(forward.as), "a forward whose values have no name"},
           {state.is_in(FrameKind::forward_hook), "a forward in the middle of another"},
           {engine.tiled.has_value(), "a forward before the backward of tiles"},
           {engine.is_spoiled, "a forward of weights that are no numbers"},
           {is_train(forward) && state.stage == 3 && !engine.gathered.empty(),
            "a graph of weights that a context holds"},
           {nested && state.program->world.skips_frames, "a forward inside a backward of frames"},
           {nested && (forward.spike || forward.around != Forward::Around::none),
            "a forward inside a backward with more than its backward"}});
      !problem.empty())
    return problem;
  for (const Skip& skip : forward.skips)
    if (std::string problem = skip_problem(state, forward, skip); !problem.empty()) return problem;
  for (const std::string& problem : {nested_problem(state, forward), around_problem(state, forward),
                                     spike_problem(state, engine, forward),
                                     frozen_problem(engine, forward), leaf_problem(state, forward),
                                     frames_problem(state, forward), tiles_problem(state, forward)})
    if (!problem.empty()) return problem;
  return {};
}

// --- its hooks ----------------------------------------------------------------------------------

bool is_weight_hook_alone(const State& state, const Forward& forward, const Hook& hook,
                          const ForwardFlow& flow) {
  const Module* const module = find_module(state.model(forward.engine), hook.module);
  const bool is_owner = module && (std::holds_alternative<Linear>(module->kind) ||
                                   std::holds_alternative<Custom>(module->kind));
  const bool is_reached = std::ranges::any_of(
      flow.losses, [&](const Reach& loss) { return loss.weights.contains(hook.module); });
  return is_owner && is_reached && hook.body.size() == 1 && raises(hook.body);
}

std::string hook_problem(const State& state, const Forward& forward, const Hook& hook,
                         const ForwardFlow& flow) {
  if (hook.at == Hook::At::loss)
    return first_broken({{!hook.module.empty(), "a hook of a loss and of a module"},
                         {!is_train(forward), "a hook of a backward that does not come"},
                         {hook.body.size() != 1 || !raises(hook.body),
                          "a hook of a loss that does more than throw"},
                         {traits_of(state.model(forward.engine)).has_tiles, "a hook of tiles"}});
  const Module* const module = find_module(state.model(forward.engine), hook.module);
  if (!module || !can_hook(*module)) return "a hook of a module that has none";
  if (!flow.ran.contains(hook.module)) return "a hook of a module that does not run";
  if (hook.at == Hook::At::forward) return {};
  return first_broken(
      {{!is_train(forward), "a hook of a backward that does not come"},
       {traits_of(state.model(forward.engine)).has_tiles && flow.ran.at(hook.module) != -1,
        "a hook of tiles"},
       {!flow.passes.contains(hook.module), "a hook of a gradient that does not come"},
       {hook.at == Hook::At::weight && !is_weight_hook_alone(state, forward, hook, flow),
        "a hook of a weight without a gradient, or that does more than throw"}});
}

Result<void> run_forward_hooks(Walk& walk, const Forward& forward) {
  for (const Module* const module : nodes_of(walk.state().model(forward.engine)))
    for (const Hook& hook : forward.hooks) {
      if (hook.at != Hook::At::forward || hook.module != module->name) continue;
      const Frame frame{.kind = FrameKind::forward_hook, .engine = forward.engine};
      if (auto ran = walk.run_in(frame, hook.body); !ran) return ran;
      if (walk.is_raising()) return {};
    }
  return {};
}

// --- what it makes ------------------------------------------------------------------------------

template <class Kind>
std::shared_ptr<const Kind> kept(const Walk& walk, const Kind& kind) {
  if (walk.is_stable()) return std::shared_ptr<const Kind>(std::shared_ptr<const Kind>(), &kind);
  return std::make_shared<const Kind>(kind);
}

void define_losses(State& state, const Forward& forward, int graph, const ForwardFlow& flow) {
  const bool is_trained = is_train(forward);
  for (std::size_t i = 0; i < flow.losses.size(); ++i) {
    const std::string name = i == 0 ? forward.as : forward.as + "." + std::to_string(i);
    state.define(name, {.terms = {{.graph = graph, .loss = static_cast<int>(i)}},
                        .has_graph = is_trained && flow.losses[i].has_graph});
  }
  if (state.model(forward.engine).returns_activations)
    state.define(
        forward.as + ".h",
        {.terms = {{.graph = graph, .loss = -1}}, .has_graph = is_trained, .is_scalar = false});
}

std::shared_ptr<const ForwardFlow> flow_of_call(const CallModule& call, const Module& module) {
  ForwardFlow flow;
  flow.losses = {
      {.weights = call.uses_weight_alone ? std::set{call.module} : weights_with_gradient(module),
       .has_graph = true}};
  return std::make_shared<const ForwardFlow>(std::move(flow));
}

}  // namespace

Verdict check(Walk& walk, const Forward& forward) {
  State& state = walk.state();
  const auto engine = engine_of(state, forward.engine);
  if (!engine) return tl::unexpected(engine.error());
  if (std::string why = forward_problem(state, **engine, forward); !why.empty())
    return no_sense(std::move(why));
  const FlowOptions options = flow_options(**engine, forward);
  ForwardFlow flow = flow_of(state.model(forward.engine), options);
  for (const Hook& hook : forward.hooks)
    if (std::string why = hook_problem(state, forward, hook, flow); !why.empty())
      return no_sense(std::move(why));
  const bool has_graphs = std::ranges::all_of(flow.losses, &Reach::has_graph);
  if (is_train(forward) && !has_graphs) return no_sense("a loss without a graph");
  const ModelTraits traits = traits_of(state.model(forward.engine));
  if (is_train(forward) && flow.has_unfed_experts && !may_starve_leaf(state, forward))
    return no_sense("experts whose input needs no gradient");
  if (forward.expert < 0 || forward.expert >= std::max(traits.experts, 1))
    return no_sense("an expert that is not there");
  (*engine)->has_forwarded = true;
  if (auto ran = run_forward_hooks(walk, forward); !ran) return tl::unexpected(ran.error());
  if (walk.is_raising()) return Expectation{};
  const int number = state.next_graph++;
  if (traits.has_tiles) (*engine)->tiled = number;
  Graph graph{.engine = forward.engine,
              .forward = kept(walk, forward),
              .call = nullptr,
              .flow = std::make_shared<const ForwardFlow>(std::move(flow)),
              .weights = (*engine)->weights,
              .frames = state.frames.size(),
              .hooks = state.hooks_around()};
  const auto made = graph.flow;
  state.graphs[number] = std::move(graph);
  define_losses(state, forward, number, *made);
  return Expectation{};
}

Verdict check(Walk& walk, const CallModule& call) {
  State& state = walk.state();
  const auto engine = engine_of(state, call.engine);
  if (!engine) return tl::unexpected(engine.error());
  const Module* const module = find_module(state.model(call.engine), call.module);
  if (!module) return no_sense("a call of a module that is not there");
  const bool is_owner = trained_of(*module) == Trained::all && has_trained_weight(*module);
  const auto* const custom = std::get_if<Custom>(&module->kind);
  const ModelTraits traits = traits_of(state.model(call.engine));
  const ZeroConfig& config = state.config();
  const bool is_weight = call.uses_weight_alone;
  const std::string why = first_broken(
      {{!is_name(call.as), "a call whose value has no name"},
       {!is_owner, "a call of a module without a trained weight"},
       {custom && custom->returns_weight, "a call of a module that returns its weight"},
       {state.engines.size() > 1 || traits.has_tiles || state.program->world.skips_frames,
        "a call past one of several engines, tiles or skipped frames"},
       {config.stage3_module_granularity_threshold > 0, "a call past leaf modules"},
       {!(*engine)->frozen.empty(), "a call past the engine while a module is frozen"},
       {(*engine)->is_spoiled, "a call of weights that are no numbers"},
       {state.is_in(FrameKind::forward_hook) || state.backward_around() != nullptr,
        "a call in the middle of a pass"},
       {is_weight && call.in_checkpoint, "a weight alone in a checkpoint"},
       {is_weight && (!config.memory_efficient_linear || config.torch_autocast.enabled),
        "a weight that PyTorch's own linear() or autocast keeps"},
       {is_weight && (weight_dimensions(*module) != 2 || input_dimensions(*module) != 2),
        "a linear function of no matrix"},
       {is_weight && !(*engine)->gathered.contains(call.module), "a weight that no context holds"},
       {!is_weight && state.stage == 3 && !(*engine)->gathered.empty(),
        "a graph of weights that a context holds"}});
  if (!why.empty()) return no_sense(why);
  const int number = state.next_graph++;
  Graph graph{.engine = call.engine,
              .forward = nullptr,
              .call = kept(walk, call),
              .flow = flow_of_call(call, *module),
              .weights = (*engine)->weights,
              .frames = state.frames.size(),
              .hooks = 0};
  state.graphs[number] = std::move(graph);
  state.define(call.as, {.terms = {{.graph = number, .loss = 0}}});
  return Expectation{};
}

Verdict check(Walk& walk, const Sum& sum) {
  State& state = walk.state();
  if (!is_name(sum.as) || sum.values.size() < 2) return no_sense("a sum of fewer than two values");
  Value result;
  for (const std::string& name : sum.values) {
    const auto value = state.values.find(name);
    if (value == state.values.end()) return no_sense("there is no value '" + name + "'");
    if (!value->second.is_scalar || !value->second.has_graph)
      return no_sense("a sum of what is no loss: '" + name + "'");
    const auto& terms = value->second.terms;
    result.terms.insert(result.terms.end(), terms.begin(), terms.end());
  }
  if (state.is_in(FrameKind::forward_hook)) return no_sense("a sum in the middle of a forward");
  state.define(sum.as, std::move(result));
  return Expectation{};
}

Verdict check(Walk& walk, const Drop& drop) {
  State& state = walk.state();
  const auto value = state.values.find(drop.value);
  if (value == state.values.end()) return no_sense("there is no value '" + drop.value + "'");
  for (const Term& term : value->second.terms) {
    const Graph& graph = state.graphs.at(term.graph);
    const EngineState& engine = state.engines.at(graph.engine);
    if (engine.tiled == term.graph) return no_sense("tiles whose backward does not come");
    if (!drop.rank) continue;
    const bool is_plain = !graph.forward || (graph.forward->hooks.empty() &&
                                             graph.forward->around == Forward::Around::none);
    const std::string why = first_broken(
        {{*drop.rank < 0 || *drop.rank >= state.ranks, "a rank that is not there drops a graph"},
         {state.ranks < 2 || state.program->world.tensor > 1 || state.engines.size() > 1,
          "one rank alone drops a graph"},
         {state.program->world.skips_frames || !is_plain || graph.has_second_graph,
          "no graph that one rank could drop"}});
    if (!why.empty()) return no_sense(why);
  }
  if (state.backward_around() || state.is_in(FrameKind::forward_hook))
    return no_sense("a graph is dropped in the middle of a pass");
  state.drop_graphs_of(drop.value);
  return Expectation{};
}

Verdict check(Walk& walk, const Transform& transform) {
  State& state = walk.state();
  const auto engine = engine_of(state, transform.engine);
  if (!engine) return tl::unexpected(engine.error());
  const Model& model = state.model(transform.engine);
  const ModelTraits traits = traits_of(model);
  const bool is_float32 = state.config().model_dtype() == DType::float32;
  const std::string why = first_broken(
      {{!state.is_at_top() || state.engines.size() > 1, "a transform beside blocks or engines"},
       {!is_float32 || state.config().torch_autocast.enabled, "a transform of another dtype"},
       {model.losses() > 1 || model.container != Container::tensors || model.has_constant_output ||
            model.returns_activations,
        "a transform of several outputs"},
       {!traits.is_plain || state.program->world.skips_frames,
        "a transform of what has no rule for one"},
       {(*engine)->is_spoiled || !(*engine)->frozen.empty(), "a transform of frozen weights"}});
  if (!why.empty()) return no_sense(why);
  return Expectation{};
}

Verdict check(Walk& walk, const ForeignBackward&) {
  State& state = walk.state();
  if (state.is_in(FrameKind::forward_hook))
    return no_sense("a backward in the middle of a forward");
  return Expectation{};
}

}  // namespace zeroproof::program
