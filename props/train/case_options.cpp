#include "props/train/case_options.h"

#include <algorithm>

namespace zeroproof::train {
namespace {

// Layers that are leaf modules.
std::string leaf_problem(const CaseSpec& spec) {
  const auto is_linked = [](const LayerSpec& layer) {
    return layer.is_linked != 0 || layer.is_raw != 0;
  };
  const auto overflows = [](const MicroSpec& micro) { return micro.overflow != 0; };
  if (spec.input_grad == 0 || !std::ranges::all_of(spec.layers, is_linked) ||
      std::ranges::any_of(spec.micros, overflows))
    return "leaf modules need inputs that need a gradient";
  if (spec.stage != 3 || spec.engines > 1 || spec.is_tiled != 0 || spec.skips_frames != 0)
    return "leaf modules are of one engine of stage 3";
  if (spec.reads == 0) return {};
  // Their gradients are added where the leaf's own backward ends.
  const LayerSpec& read = spec.layers[static_cast<std::size_t>(spec.reads) - 1];
  return read.is_raw + read.is_frozen + read.is_weight_frozen == 0 ? "a leaf's weight is read" : "";
}

// Two classes, of which one is safe for autocast's dtype.
bool may_own_twice(const CaseSpec& spec) {
  const LayerSpec& first = spec.layers.front();
  return static_cast<Precision>(spec.precision) == Precision::autocast && spec.engines == 1 &&
         (spec.stage == 1 || spec.stage == 2) && first.is_raw == 0 && first.outputs > 0 &&
         spec.is_tiled + spec.first_ranks == 0;
}

// A weight that leaves its layer, once in every forward.
std::string return_problem(const CaseSpec& spec) {
  if (spec.returns == 0) return {};
  if (spec.returns < 0 || spec.returns > static_cast<int>(spec.layers.size()))
    return "a weight of no layer";
  const LayerSpec& layer = spec.layers[static_cast<std::size_t>(spec.returns) - 1];
  const auto is_called = [&](const CallSpec& call) { return call.layer == spec.returns - 1; };
  const auto is_wrapped = [&](const CallSpec& call) { return is_called(call) && call.wrap != 0; };
  const auto leaves = [](const MicroSpec& micro) {
    return micro.has_bypass != 0 || micro.overflow != 0 || micro.idle_forward >= 3;
  };
  if (layer.is_raw == 0 || layer.outputs == 0 ||
      std::ranges::count_if(spec.calls, is_called) != 1 ||
      std::ranges::any_of(spec.calls, is_wrapped) || std::ranges::any_of(spec.micros, leaves))
    return "a weight is returned by a raw layer of one plain call";
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  if (spec.engines > 1 || spec.heads > 1 || spec.is_tiled != 0 || spec.reads != 0 || is_autocast ||
      spec.granularity != 0 || spec.skips_frames != 0)
    return "a weight is returned with one engine and head, no tiles and no autocast";
  return {};
}

}  // namespace

std::string refusal_problem(const CaseSpec& spec) {
  const bool is_fp16 = static_cast<Precision>(spec.precision) == Precision::fp16;
  const bool is_manual = spec.is_manual != 0 || (spec.engines > 1 && spec.takes_turns == 0);
  if (is_manual && spec.stage == 0) return "a manual backward in stage 0";
  if (is_fp16 && spec.engines > 1 && spec.is_manual + spec.takes_turns == 0)
    return "two engines that both scale";
  if (spec.is_offloaded != 0 && spec.stage == 0) return "offload in stage 0";
  for (const MicroSpec& micro : spec.micros) {
    if (micro.outstanding != 0 && is_fp16 && spec.engines > 1)
      return "two backwards that were scaled before the first";
    if (micro.is_undivided != 0 && spec.engines > 1) return "a manual backward has no argument";
    if (micro.has_bypass != 0 && (spec.engines > 1 || spec.is_tiled != 0))
      return "a bypass of two engines";
    if (micro.is_undivided != 0 && spec.is_tiled != 0) return "tiles know no argument of backward";
    // A tile cannot tell that no backward will come.
    if ((micro.idle_forward != 0 || micro.throws != 0) && spec.is_tiled != 0)
      return "tiles for nothing";
  }
  return {};
}

std::string option_problem(const CaseSpec& spec) {
  if (!is_flag(spec.checks) || spec.persistence_all < 0 || spec.live < 0 || spec.granularity < 0 ||
      spec.leaf_by < 0 || spec.leaf_by > static_cast<int>(LeafBy::class_name))
    return "a number out of range";
  if (spec.leaf_by != 0 && spec.experts == 0) return "no module to name";
  const bool may_pack = spec.granularity != 0 || spec.is_unsafe == 3;
  if (spec.packs < 0 || spec.packs > 2 || (spec.packs == 1 && !may_pack) ||
      (spec.packs == 2 && !may_own_twice(spec)) || (spec.is_unsafe == 3 && spec.packs != 1))
    return "a container that nothing is for";
  if (spec.registers < 0 || spec.registers > CaseSpec::kTied || spec.is_unsafe < 0 ||
      spec.is_unsafe > 3)
    return "a number out of range";
  if (spec.registers != 0 && (spec.reads == 0 || spec.skips_frames != 0))
    return "nothing to register";
  if (spec.registers == CaseSpec::kTied && spec.reads_late == 0) return "nobody to share a weight";
  if (std::string problem = return_problem(spec); !problem.empty()) return problem;
  return spec.granularity != 0 ? leaf_problem(spec) : "";
}

std::string update_problem(const CaseSpec& spec) {
  if (spec.groups < 1 || spec.groups > 3 || spec.rule < 0 || spec.rule > 3 || spec.scaling < 0 ||
      spec.scaling > 4 || spec.sets_boundary < 0 || spec.sets_boundary > 3 ||
      spec.gather_bucket < 1 || spec.owns_scale < 0 || spec.owns_scale > 3 ||
      !is_flag(spec.has_ranks_apart) || !is_flag(spec.is_unchecked))
    return "a number out of range";
  const auto precision = static_cast<Precision>(spec.precision);
  if (spec.sets_boundary != 0 && spec.is_unmanaged != 0) return "step() is the boundary";
  if (spec.sets_boundary == 3 && spec.accumulation != 1) return "a step of which each is one";
  // Of the user's own, one that nothing needs holds all the same.
  const bool may_own = precision == Precision::fp16 ||
                       (precision != Precision::autocast && spec.engines == 1 &&
                        spec.owns_scale < 3 && spec.masters == 0 && spec.is_dynamic == 0);
  if (spec.owns_scale != 0 && !may_own) return "a scale that nothing needs";
  if (spec.owns_scale == 3 && spec.is_dynamic == 0) return "a scale that does not move anyway";
  if (spec.is_unchecked != 0 && precision != Precision::bf16)
    return "an overflow that nobody looks for";
  return {};
}

std::string need_problem(const CaseSpec& spec) {
  if (!is_flag(spec.needs_all) || !is_flag(spec.is_lifted) || !is_flag(spec.is_strict))
    return "a number out of range";
  const bool asks = spec.needs_all != 0 || (spec.is_offloaded != 0 && spec.stage != 3);
  if (spec.is_strict != 0 && asks) return "gradients that somebody misses";
  if (spec.is_lifted != 0 &&
      (static_cast<Precision>(spec.precision) != Precision::fp16 || spec.engines > 1))
    return "a product that has room";
  if (spec.needs_all == 0) return {};
  const auto overflows = [](const MicroSpec& micro) { return micro.overflow != 0; };
  if (spec.is_offloaded == 0 || spec.stage < 1 || spec.stage > 2 || spec.engines > 1 ||
      spec.experts != 0 || std::ranges::any_of(spec.micros, overflows))
    return "a gradient that nobody misses";
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const auto is_used = [&](const CallSpec& call) {
      return call.layer == static_cast<int>(i) && (call.wrap != 1 || spec.input_grad != 0);
    };
    if (spec.layers[i].is_frozen == 0 && std::ranges::none_of(spec.calls, is_used))
      return "a gradient that never comes";
  }
  return {};
}

}  // namespace zeroproof::train
