#include "props/train/case_inputs.h"

#include <algorithm>

#include "props/train/case_additions.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kInputStream = 0x696e70757473ULL;

void watch(CaseSpec& spec, Draws& draws) {
  spec.input_grad = spec.input_grad != 0 ? 1 : draws.flag(2);
  spec.watches = draws.flag(2);
  for (LayerSpec& layer : spec.layers) {
    if (layer.outputs == 0 || draws.one_in(3)) continue;
    layer.is_watched = 1;
    if (layer.is_raw == 0) layer.is_linked = 1;
  }
}

void watch_uses(CaseSpec& spec, Draws& draws) {
  spec.watches = 1;
  if (spec.reads + spec.returns != 0 || draws.one_in(2)) return;
  if (draws.one_in(2)) spec.reads = some_layer(spec, draws);
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.has_bypass = static_cast<int>(Bypass::weight);
}

void give_more(CaseSpec& spec, Draws& draws) {
  spec.input_grad = 1;
  for (LayerSpec& layer : spec.layers) layer.has_two_inputs = draws.below(3);
}

void reshape_inputs(CaseSpec& spec, Draws& draws) {
  for (LayerSpec& layer : spec.layers) {
    if (layer.is_raw != 0) continue;
    layer.dimensions = draws.of({0, 1, 3});
    if (draws.one_in(2)) layer.has_bias = 1;
  }
}

void change_in_backwards(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.interrupt = static_cast<int>(Interrupt::changes);
    micro.interrupt_at = some_call(spec, draws);
  }
}

void run_in_contexts(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    if (draws.one_in(2)) continue;
    const bool changes = is_first(spec, i) && draws.one_in(2);
    spec.micros[i].gathers = static_cast<int>(changes ? Gathers::changes_and_runs : Gathers::runs);
  }
}

void idle_first(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.idle_forward = micro.idles_first = 1;
    if (micro.gathers == 0) micro.gathers = draws.between(1, 3);
  }
}

void outdate(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.plain_linear = spec.is_manual = spec.skips_frames = spec.granularity = 0;
  spec.reads = spec.reads_late = spec.registers = spec.returns = spec.experts = spec.leaf_by = 0;
  for (CallSpec& call : spec.calls) call.wrap = call.is_joined = 0;
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.outdates = 1;
    micro.aborts = micro.aborts_on_loss = micro.aborts_inside = 0;
    micro.by_hand = micro.wrapped = 0;
  }
}

void read_apart(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.registers = spec.input_grad = 1;
  spec.reads_late = spec.watches = 0;
  spec.bucket = CaseSpec::kManyElements;
  if (spec.reads == 0) spec.reads = some_layer(spec, draws);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.unread = 1;
    micro.unread_on = draws.between(1, spec.ranks);
  }
}

void differentiate_examples(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.idle_forward = 4;
}

// The checks of contexts, of what equals nothing.
void hold_none(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.checks = 1;
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (is_first(spec, i) && draws.one_in(2))
      spec.micros[i].gathers = static_cast<int>(Gathers::holds_none);
}

void look_rounded(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.gathers = static_cast<int>(Gathers::looks_rounded);
}

std::string layer_input_problem(const LayerSpec& layer) {
  if (layer.has_two_inputs < 0 || layer.has_two_inputs > 2 || !is_flag(layer.is_watched) ||
      (layer.dimensions != 0 && layer.dimensions != 1 && layer.dimensions != 3))
    return "a layer out of range";
  if (layer.dimensions != 0 && layer.is_raw != 0) return "a raw layer gets nothing of a shape";
  const bool has_gradient = layer.outputs > 0 && layer.is_linked + layer.is_raw != 0;
  return layer.is_watched == 0 || has_gradient ? "" : "no gradient to watch";
}

// Some linear function keeps a weight that is written to, and its backward comes.
std::string outdate_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (!is_flag(micro.outdates)) return "a number out of range";
  if (micro.outdates == 0) return {};
  const auto keeps_weight = [&](const CallSpec& call) {
    const LayerSpec& layer = spec.layers[static_cast<std::size_t>(call.layer)];
    return layer.is_raw == 0 && layer.outputs > 0 && layer.is_frozen == 0;
  };
  const bool is_plain = spec.engines == 1 && spec.heads == 1 && spec.is_tiled == 0 &&
                        spec.skips_frames == 0 && spec.granularity == 0 && spec.experts == 0 &&
                        spec.is_manual == 0 && spec.has_grad_scaler == 0 &&
                        spec.reads + spec.returns == 0 && !has_checkpoints(spec) &&
                        static_cast<Precision>(spec.precision) != Precision::autocast;
  const auto runs_ahead = [](const MicroSpec& it) {
    return static_cast<Outstanding>(it.outstanding) == Outstanding::ahead;
  };
  const bool is_alone =
      micro.aborts + micro.aborts_on_loss + micro.aborts_inside + micro.by_hand + micro.wrapped ==
          0 &&
      std::ranges::none_of(spec.micros, runs_ahead);
  return spec.stage == 3 && spec.plain_linear == 0 && is_plain && is_alone &&
                 std::ranges::any_of(spec.calls, keeps_weight)
             ? ""
             : "a graph that keeps no weights";
}

std::string read_apart_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.unread_on < 0 || micro.unread_on > spec.ranks) return "a number out of range";
  if (micro.unread_on == 0) return {};
  // Each rank has some gradient for it, and the same modules in its backward.
  const auto has_gradient = [&](const CallSpec& call) {
    return call.layer == spec.reads - 1 && call.wrap == 0;
  };
  const bool is_simple =
      spec.heads == 1 && spec.input_grad != 0 && micro.skips == 0 && !has_abort(micro);
  const bool is_right = is_simple && std::ranges::any_of(spec.calls, has_gradient) &&
                        micro.unread != 0 && spec.registers != 0 && spec.reads_late == 0 &&
                        spec.watches == 0 && spec.stage == 3 &&
                        spec.bucket == CaseSpec::kManyElements;
  return is_right ? "" : "ranks that gather in different orders";
}

std::string context_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const auto gathers = static_cast<Gathers>(micro.gathers);
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  if (!is_flag(micro.idles_first)) return "a number out of range";
  if (micro.idles_first != 0 && micro.idle_forward != 1) return "no forward that could be first";
  if (gathers == Gathers::looks_rounded &&
      (!is_autocast || spec.stage != 3 || spec.persistence != 0))
    return "weights that nobody rounds";
  if (runs_in_context(micro) && (spec.is_tiled != 0 || micro.abandons != 0))
    return "a forward that a context cannot have";
  if (static_cast<Interrupt>(micro.interrupt) != Interrupt::changes) return {};
  if (is_autocast) return "autocast gathers weights rounded";
  // What PyTorch's own linear() or a recompute has saved is the storage that was changed; what a
  // layer has returned is one that another context gives up.
  const bool is_given_up = spec.returns != 0 && micro.looks != 0;
  return spec.stage != 3 || (spec.plain_linear == 0 && !has_checkpoints(spec) && !is_given_up)
             ? ""
             : "a change that is undone elsewhere";
}

bool watches_inputs(const CaseSpec& spec) {
  return spec.watches != 0 || std::ranges::any_of(spec.layers, [](const LayerSpec& layer) {
           return layer.is_watched != 0;
         });
}

}  // namespace

Additions input_additions() {
  static constexpr Addition kInputs[] = {
      {2, watch},      {3, watch_uses},      {3, give_more},           {3, reshape_inputs},
      {4, idle_first}, {4, run_in_contexts}, {4, look_rounded},        {4, hold_none},
      {4, outdate},    {4, read_apart},      {4, change_in_backwards}, {3, differentiate_examples}};
  return {kInputStream, 3, kInputs};
}

bool compares_watched(const CaseSpec& spec) {
  const auto is_by_hand = [](const MicroSpec& micro) { return micro.by_hand != 0; };
  const bool is_manual = spec.is_manual != 0 || std::ranges::any_of(spec.micros, is_by_hand);
  const bool is_divided = spec.accumulation != 1 || spec.sets_boundary != 0;
  if (!watches_inputs(spec) || (is_manual && is_divided)) return false;
  // What the baseline differentiates in no checkpoint, or with weights that nobody rounds.
  const bool is_rounded = static_cast<Precision>(spec.precision) == Precision::autocast;
  return std::ranges::none_of(spec.micros, [&](const MicroSpec& micro) {
    const bool is_broken = static_cast<Interrupt>(micro.interrupt) == Interrupt::breaks;
    return is_broken || checkpoints_past_engine(micro) != 0 ||
           (is_rounded && micro.has_bypass + micro.past_engine != 0);
  });
}

std::string input_problem(const CaseSpec& spec) {
  if (!is_flag(spec.watches)) return "a number out of range";
  for (const LayerSpec& layer : spec.layers)
    if (std::string problem = layer_input_problem(layer); !problem.empty()) return problem;
  // Of tiles each has its own; a transform has no part for the user's Function.
  const auto transforms = [](const MicroSpec& micro) { return micro.idle_forward >= 3; };
  if (watches_inputs(spec) && (spec.is_tiled != 0 || std::ranges::any_of(spec.micros, transforms)))
    return "gradients that nobody can watch";
  for (const MicroSpec& micro : spec.micros) {
    if (std::string problem = outdate_problem(spec, micro); !problem.empty()) return problem;
    if (std::string problem = read_apart_problem(spec, micro); !problem.empty()) return problem;
    if (std::string problem = context_problem(spec, micro); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace zeroproof::train
