// What a backward brings, or why it is refused.
#include <algorithm>
#include <utility>
#include <vector>

#include "props/program/model_traits.h"
#include "props/program/rules.h"
#include "props/program/rules/backward_hooks.h"
#include "props/program/rules/spikes.h"

namespace zeroproof::program {
namespace {

using FrameKind = Frame::Kind;

// The parts of a value that belong to one engine.
struct Share {
  std::string engine;
  std::vector<const Term*> terms;
  bool has_output = false;  // of a forward of the engine
  int checkpoints = 0;      // of the user, around calls past it
};

std::vector<Share> shares_of(const State& state, const Value& value) {
  std::vector<Share> shares;
  for (const Term& term : value.terms) {
    const Graph& graph = state.graphs.at(term.graph);
    auto at = std::ranges::find(shares, graph.engine, &Share::engine);
    if (at == shares.end()) at = shares.insert(at, Share{.engine = graph.engine});
    at->terms.push_back(&term);
    at->has_output = at->has_output || graph.forward != nullptr;
    at->checkpoints += graph.call && graph.call->in_checkpoint ? 1 : 0;
  }
  return shares;
}

bool is_scaled_by(const Term& term, const std::string& engine, const ScalerState& scaler) {
  return term.factors.size() == 1 && term.factors.front().engine == engine &&
         term.factors.front().version == scaler.version;
}

// One backward statement where it stands.
class BackwardCheck {
 public:
  BackwardCheck(Walk& walk, const Backward& backward, const Value& value)
      : walk_(walk),
        state_(walk.state()),
        backward_(backward),
        value_(value),
        shares_(shares_of(walk.state(), value_)) {}

  Verdict run() {
    if (std::string why = problem(); !why.empty()) return no_sense(std::move(why));
    for (const Share& share : shares_)
      if (std::string why = share_problem(share); !why.empty()) return no_sense(std::move(why));
    if (std::string why = staleness_problem(); !why.empty()) return no_sense(std::move(why));
    const Expectation refusal = expected();
    if (refusal.is_refused() && has_hooks())
      return no_sense("a backward that is refused and has hooks");
    if (!refusal.is_refused()) {
      if (auto ran = run_hooks(); !ran) return tl::unexpected(ran.error());
    }
    if (walk_.is_raising())
      if (std::string why = raise_problem(); !why.empty()) return no_sense(std::move(why));
    if (refusal.is_refused() || walk_.is_raising()) {
      abort(refusal);
      return refusal;
    }
    for (const Share& share : shares_) bring(share);
    if (!backward_.engine.empty() && !is_of(backward_.engine)) end_backward(managed());
    free_graphs();
    return Expectation{};
  }

 private:
  bool is_managed() const { return !backward_.engine.empty(); }
  EngineState& managed() { return state_.engines.at(backward_.engine); }
  EngineState& engine(const Share& share) { return state_.engines.at(share.engine); }
  bool is_of(const std::string& engine) const {
    return std::ranges::find(shares_, engine, &Share::engine) != shares_.end();
  }
  bool keeps_graph() const { return backward_.retain_graph || backward_.create_graph; }
  Graph& graph(const Term& term) { return state_.graphs.at(term.graph); }
  const Graph& graph(const Term& term) const { return state_.graphs.at(term.graph); }

  std::string problem() const {
    const bool is_inside = state_.backward_around() != nullptr;
    return first_broken(
        {{state_.is_in(FrameKind::forward_hook), "a backward in the middle of a forward"},
         {is_inside && !is_managed(), "a manual backward inside another"},
         {is_inside && keeps_graph(), "a backward inside another that keeps its graph"},
         {is_inside && (shares_.size() > 1 || shares_.front().engine != backward_.engine),
          "a backward inside another of more than its own engine"},
         {is_inside && is_repeated_inside(), "a loss that the backward around is of, too"},
         {!is_managed() && (backward_.create_graph || !backward_.scale_wrt_gas),
          "a manual backward with arguments of engine.backward"},
         {state_.program->world.skips_frames && keeps_graph(),
          "a second backward over a graph that claims parameters"},
         {backward_.create_graph && has_tiles(), "a graph of the gradients of tiles"},
         {!backward_.scale_wrt_gas && (state_.engines.size() > 1 || has_tiles()),
          "an undivided backward of several engines or tiles"},
         {is_past_limit(state_, value_), "gradients at their limits that come twice"}});
  }

  // An engine that the backward around is of: in stages below 3, one that throws at its loss.
  bool is_repeated_inside() const {
    const Frame& around = *state_.backward_around();
    if (!around.engines.contains(backward_.engine) || around.managed == backward_.engine)
      return false;
    return state_.stage == 3 || !throws_at_loss();
  }

  bool throws_at_loss() const {
    return std::ranges::any_of(value_.terms, [&](const Term& term) {
      const auto& forward = graph(term).forward;
      return forward && std::ranges::any_of(forward->hooks, [](const Hook& hook) {
               return hook.at == Hook::At::loss;
             });
    });
  }

  bool has_tiles() const {
    return std::ranges::any_of(shares_, [&](const Share& share) {
      return traits_of(state_.model(share.engine)).has_tiles;
    });
  }

  std::string share_problem(const Share& share) {
    const EngineState& its = engine(share);
    for (const Term* const term : share.terms) {
      const Graph& its_graph = graph(*term);
      const bool is_tiled = its.tiled == term->graph;
      if (std::string why = first_broken(
              {{is_freed(its_graph, term->loss), "a backward over a graph that is freed"},
               {its_graph.hooks != state_.hooks_around(),
                "a backward over a graph from outside the hook it is in, or from inside one"},
               {is_tiled && its_graph.frames != state_.frames.size(),
                "a block around the backward of tiles alone"},
               {is_tiled && keeps_graph(), "a second backward over tiles"}});
          !why.empty())
        return why;
      if (std::string why = call_problem(share, its_graph); !why.empty()) return why;
      if (std::string why = around_problem(its_graph); !why.empty()) return why;
    }
    if (std::string why = past_problem(share); !why.empty()) return why;
    return scale_problem(share);
  }

  // A weight alone has its module under way where its gradient arrives.
  std::string call_problem(const Share& share, const Graph& past) const {
    if (!past.call || !past.call->uses_weight_alone) return {};
    const EngineState& its = state_.engines.at(share.engine);
    const bool is_used = std::ranges::any_of(share.terms, [&](const Term* const term) {
      const Graph& its_graph = graph(*term);
      return its_graph.forward && its_graph.forward->hooks.empty() &&
             its_graph.flow->losses.size() == 1 &&
             its_graph.flow->unwrapped.contains(past.call->module) &&
             its_graph.flow->ran.contains(past.call->module);
    });
    return first_broken(
        {{!is_used, "a weight that no module of the backward has"},
         {!its.gathered.empty() || !its.frozen.empty(), "a weight in a context that is still open"},
         {is_managed() && !is_of(backward_.engine), "a weight of another engine"}});
  }

  // Each checkpoint counts as one more manual backward, and as one without scale.
  std::string around_problem(const Graph& wrapped) const {
    const bool is_wrapped = wrapped.forward && wrapped.forward->around != Forward::Around::none;
    if (!is_wrapped || is_managed()) return {};
    const bool is_scaled = state_.engines.at(wrapped.engine).scaler.is_needed();
    return first_broken({{is_scaled || !state_.config().managed_gradient_accumulation,
                          "a manual backward through a checkpoint around a forward"}});
  }

  std::string past_problem(const Share& share) const {
    const bool is_past = std::ranges::any_of(
        share.terms, [&](const Term* const term) { return graph(*term).call != nullptr; });
    if (!is_past || is_managed()) return {};
    const EngineState& its = state_.engines.at(share.engine);
    const ZeroConfig& config = state_.config();
    const bool can_hook =
        state_.stage != 1 || config.contiguous_gradients || config.has_overlap_comm();
    const bool is_supported = state_.supports_manual_backward();
    return first_broken(
        {{!is_supported && state_.stage == 3, "a manual backward past an engine of stage 3"},
         {!config.managed_gradient_accumulation || its.boundary.has_value(),
          "a manual backward past an engine whose boundary is its user's"},
         {is_supported && !can_hook, "a manual backward past hooks that are not there"},
         {share.checkpoints > 1 && its.scaler.is_needed(), "checkpoints under a loss scale"},
         {share.checkpoints > 0 && share.has_output && its.scaler.is_needed(),
          "a checkpoint under a loss scale beside a forward"},
         {!share.has_output && state_.stage == 1 && config.has_overlap_comm() && !its.has_forwarded,
          "a manual backward past an engine that has not begun its window"}});
  }

  // Every part gets its engine's scale once. Whether the engine was asked is expected()'s.
  std::string scale_problem(const Share& share) {
    const EngineState& its = engine(share);
    const bool is_run = is_managed() && share.engine == backward_.engine;
    const bool is_other_scaled = is_managed() && !is_run && managed().scaler.scale != 1.0;
    for (const Term* const term : share.terms) {
      const bool is_scaled = is_scaled_by(*term, share.engine, its.scaler);
      const bool has_factor = !term->factors.empty();
      if (std::string why = first_broken(
              {{is_run && has_factor && its.scaler.scale != 1.0, "a loss that is scaled twice"},
               {!is_run && has_factor && !is_scaled, "a loss with another scale"},
               {is_other_scaled, "a loss that another engine scales"},
               {!is_run && !has_factor && its.scaler.is_needed() && its.is_scale_called,
                "a loss that is not scaled where another was"}});
          !why.empty())
        return why;
    }
    const bool is_unscaled = !is_run && its.scaler.is_needed() && !its.is_scale_called;
    return first_broken({{is_unscaled && !is_managed() && shares_.size() > 1,
                          "a manual backward of several engines of which one is not scaled"}});
  }

  // Weights that have changed since a graph saved them.
  std::string staleness_problem() const {
    for (const Share& share : shares_)
      for (const Term* const term : share.terms) {
        const Graph& its = graph(*term);
        if (its.weights != state_.engines.at(share.engine).weights && !is_refused_as_outdated(its))
          return "a backward over weights that have changed since";
      }
    return {};
  }

  bool is_refused_as_outdated(const Graph& its) const {
    const Model& model = state_.model(its.engine);
    const ModelTraits traits = traits_of(model);
    const ZeroConfig& config = state_.config();
    const bool keeps_weight = std::ranges::any_of(weight_owners(model), [&](const Module* owner) {
      return std::holds_alternative<Linear>(owner->kind) && elements_of(*owner) > 0 &&
             trained_of(*owner) != Trained::frozen && its.flow->ran.contains(owner->name);
    });
    return its.is_outdated_by_change && state_.stage == 3 && config.memory_efficient_linear &&
           is_managed() && state_.engines.size() == 1 && model.losses() == 1 && !traits.has_tiles &&
           !traits.has_experts && !traits.has_checkpoints && !traits.has_external_uses &&
           !traits.returns_weights && keeps_weight && its.forward && its.forward->hooks.empty() &&
           state_.frames.empty() && !config.torch_autocast.enabled &&
           !state_.program->world.skips_frames && config.stage3_module_granularity_threshold == 0 &&
           !keeps_graph() && its.forward->around == Forward::Around::none &&
           value_.terms.size() == 1;
  }

  // In the order in which the engine would see it.
  Expectation expected() {
    for (const Share& share : shares_)
      for (const Term* const term : share.terms)
        if (graph(*term).weights != engine(share).weights) return refused_otherwise();
    for (const Share& share : shares_) {
      const bool is_run = is_managed() && share.engine == backward_.engine;
      if (!is_run && !state_.supports_manual_backward())
        return refused_with(EngineErrorId::manual_backward_unsupported);
    }
    for (const Share& share : shares_) {
      const Term& first = *share.terms.front();
      if (graph(first).flow->has_unfed_experts)
        return refused_with(EngineErrorId::gradient_of_wrong_size);
      const bool is_run = is_managed() && share.engine == backward_.engine;
      const EngineState& its = engine(share);
      if (!is_run && its.scaler.is_needed() && !its.is_scale_called)
        return refused_with(EngineErrorId::backward_without_loss_scaling);
    }
    return {};
  }

  bool has_hooks() const {
    return std::ranges::any_of(value_.terms, [&](const Term& term) {
      const auto& forward = graph(term).forward;
      return forward && std::ranges::any_of(forward->hooks, [](const Hook& hook) {
               return hook.at != Hook::At::forward;
             });
    });
  }

  Result<void> run_hooks() {
    Frame frame{.kind = FrameKind::backward_hook,
                .managed = backward_.engine,
                .keeps_graph = keeps_graph()};
    for (const Share& share : shares_) frame.engines.insert(share.engine);
    return run_backward_hooks(walk_, value_, frame);
  }

  void bring(const Share& share) {
    EngineState& its = engine(share);
    for (const Term* const term : share.terms) {
      const Graph& its_graph = graph(*term);
      const Reach& reach = its_graph.flow->losses.at(static_cast<std::size_t>(term->loss));
      its.window.reached.insert(reach.weights.begin(), reach.weights.end());
      if (its_graph.forward)
        its.window.reached.insert(its_graph.flow->tiled.begin(), its_graph.flow->tiled.end());
      its.window.has_spike =
          its.window.has_spike || brings_spike(state_.model(share.engine), its_graph, term->loss);
      if (its.tiled == term->graph) its.tiled.reset();
    }
    if (!is_managed() || share.engine != backward_.engine) its.is_scale_called = false;
    end_backward(its);
  }

  // Its epilogue: in stages 0 and 1 the sums wait for one that reduces.
  void end_backward(EngineState& its) {
    its.window.has_gradients = true;
    its.has_failed_in_block = false;
    its.has_created_graph = its.has_created_graph || backward_.create_graph;
    if (state_.stage >= 2 || !state_.config().managed_gradient_accumulation) return;
    const bool waits = its.is_in_no_sync || its.is_coalescing || !state_.is_boundary(its);
    its.window.has_local = waits;
  }

  void free_graphs() {
    for (const Term& term : value_.terms) {
      Graph& its = graph(term);
      its.has_second_graph = its.has_second_graph || backward_.create_graph;
      if (keeps_graph()) continue;
      its.is_trunk_freed = true;
      its.freed_losses.insert(term.loss);
    }
  }

  // Inside another backward it can be taken back only where its window holds no gradients.
  std::string raise_problem() {
    if (!state_.backward_around()) return {};
    const Window& window = managed().window;
    return first_broken(
        {{state_.backward_around()->managed == backward_.engine,
          "a backward that fails inside another of its engine"},
         {window.has_local, "a backward that fails inside another while local sums wait"},
         {!throws_at_loss() && window.has_gradients,
          "a backward that fails inside another in the middle of a window"}});
  }

  // What it has brought is taken back.
  void abort(const Expectation& refusal) {
    const bool is_inside = state_.backward_around() != nullptr;
    for (const Term& term : value_.terms) graph(term).is_trunk_freed = true;
    for (const Share& share : shares_) {
      EngineState& its = engine(share);
      its.tiled.reset();
      its.has_failed_in_block = its.is_in_no_sync || its.is_coalescing;
      if (must_clear(share, refusal)) its.owes = EngineState::Owes::zero_grad;
    }
    for (auto& [name, its] : state_.engines)
      if (!is_inside) its.is_scale_called = false;
  }

  bool must_clear(const Share& share, const Expectation& refusal) const {
    if (refusal.refusal == EngineErrorId::gradient_of_wrong_size) return true;
    if (refusal.refusal == EngineErrorId::backward_without_loss_scaling) return shares_.size() > 1;
    if (refusal.is_refused()) return false;
    // The engine does not learn of a backward that fails past it before it comes to its outputs.
    const bool is_past = std::ranges::any_of(
        share.terms, [&](const Term* const term) { return graph(*term).call != nullptr; });
    const bool is_inside = state_.backward_around() != nullptr;
    return (is_past && state_.stage < 2) || (is_inside && !throws_at_loss());
  }

  Walk& walk_;
  State& state_;
  const Backward& backward_;
  const Value value_;
  std::vector<Share> shares_;
};

}  // namespace

Verdict check(Walk& walk, const Backward& backward) {
  State& state = walk.state();
  if (!backward.engine.empty())
    if (const auto engine = engine_of(state, backward.engine); !engine)
      return tl::unexpected(engine.error());
  if (state.is_in(FrameKind::forward_hook))
    return no_sense("a backward in the middle of a forward");
  const auto value = state.values.find(backward.value);
  if (value == state.values.end() && !backward.value.empty())
    return no_sense("there is no value '" + backward.value + "'");
  const bool is_loss =
      value != state.values.end() && value->second.has_graph && value->second.is_scalar;
  if (!is_loss && backward.engine.empty()) return no_sense("a manual backward of what is no loss");
  if (!is_loss) return refused_with(EngineErrorId::backward_of_invalid_loss);
  for (const Term& term : value->second.terms)
    if (state.engines.at(state.graphs.at(term.graph).engine).owes != EngineState::Owes::none)
      return no_sense("a backward of an engine that has to clear or load first");
  return BackwardCheck(walk, backward, value->second).run();
}

}  // namespace zeroproof::program
