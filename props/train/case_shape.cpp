#include "props/train/case_shape.h"

#include <algorithm>

namespace zeroproof::train {
namespace {

std::string layer_problem(const LayerSpec& layer) {
  if (!is_flag(layer.is_weight_frozen) || !is_flag(layer.is_raw) || !is_flag(layer.is_closed))
    return "a layer out of range";
  if (layer.is_raw != 0 && layer.has_bias != 0) return "a raw layer has a weight alone";
  if (!is_flag(layer.has_twin) || (layer.has_twin != 0 && layer.is_raw == 0))
    return "a twin of no raw weight";
  const bool fits = layer.is_raw != 0 && layer.is_watched == 0 &&
                    (layer.shape < 3 || layer.outputs * layer.inputs == 1);
  if (layer.shape < 0 || layer.shape > 3 || (layer.shape != 0 && !fits))
    return "a weight of no such shape";
  if (layer.is_weight_frozen != 0 && (layer.has_bias == 0 || layer.is_frozen != 0))
    return "nothing of a layer is trained";
  return {};
}

// Its forward that is to throw comes to the layer that does.
bool does_throw(const CaseSpec& spec, const MicroSpec& micro) {
  for (std::size_t i = 0; i < spec.calls.size(); ++i)
    if (spec.calls[i].layer + 1 == micro.throws && micro.skips != static_cast<int>(i) + 1)
      return true;
  return false;
}

// A graph that claims parameters has one backward (docs/spec/zero.md 5).
bool can_skip_frames(const CaseSpec& spec) {
  const auto is_plain = [&](const MicroSpec& micro) {
    return micro.idle_forward <= 1 && !has_abort(micro) && micro.has_bypass == 0 &&
           micro.registers == 0 && (micro.throws == 0 || does_throw(spec, micro));
  };
  return spec.skips_frames == 1 && spec.stage == 3 && spec.engines == 1 && spec.heads == 1 &&
         spec.is_tiled == 0 && spec.experts == 0 && spec.container == 0 && !has_checkpoints(spec) &&
         std::ranges::all_of(spec.micros, is_plain);
}

}  // namespace

std::string shape_problem(const CaseSpec& spec) {
  if (spec.ranks < 1 || spec.ranks > 4 || spec.stage < 0 || spec.stage > 3 || spec.precision < 0 ||
      spec.precision > 3 || spec.engines < 1 || spec.engines > 2 || spec.heads < 1 ||
      spec.heads > 2 || spec.container < 0 || spec.container > 3)
    return "a number out of range";
  if (spec.layers.empty() || spec.calls.empty() || spec.micros.empty()) return "an empty list";
  if (spec.accumulation < 1 || spec.accumulation > 4 || spec.accumulation == 3 ||
      static_cast<int>(spec.micros.size()) % spec.accumulation != 0)
    return "micro-batches that fill no window";
  const auto calls = static_cast<int>(spec.calls.size());
  for (const CallSpec& call : spec.calls)
    if (call.layer < 0 || call.layer >= static_cast<int>(spec.layers.size()) || call.wrap < 0 ||
        call.wrap > 2)
      return "a call of no layer";
  for (const LayerSpec& layer : spec.layers)
    if (layer.inputs < 1 || layer.inputs > 8 || layer.outputs < 0 || layer.outputs > 8 ||
        !is_flag(layer.has_bias) || layer.is_frozen < 0 || layer.is_frozen > 2 ||
        !is_flag(layer.is_linked))
      return "a layer out of range";
  for (const MicroSpec& micro : spec.micros)
    if (micro.aborts > calls || micro.skips > calls || micro.overflow > calls ||
        micro.overflow_rank >= spec.world_size())
      return "a micro-batch that names no call";
  const auto layers = static_cast<int>(spec.layers.size());
  for (const MicroSpec& micro : spec.micros)
    if (micro.throws < 0 || micro.throws > layers || !is_flag(micro.is_broken) ||
        micro.restores < 0 || micro.restores > static_cast<int>(Restores::outdated) ||
        micro.gathers < 0 || micro.gathers > static_cast<int>(Gathers::holds_none) ||
        micro.abandons < 0 || micro.abandons > 2 || !is_flag(micro.guards) || micro.clears < 0 ||
        micro.clears > 5 || !is_flag(micro.peeks) || !is_flag(micro.guests) ||
        micro.outstanding < 0 || micro.outstanding > static_cast<int>(Outstanding::three))
      return "a micro-batch out of range";
  return {};
}

bool is_trained(const CaseSpec& spec, const CallSpec& call) {
  const LayerSpec& layer = spec.layers[static_cast<std::size_t>(call.layer)];
  return layer.is_frozen == 0 && layer.outputs > 0;
}

std::string model_problem(const CaseSpec& spec) {
  if (std::ranges::none_of(spec.calls, [&](const CallSpec& it) { return is_trained(spec, it); }))
    return "nothing is trained";
  if (spec.heads == 2 && (spec.calls.size() < 2 || spec.is_tiled != 0 || spec.engines > 1))
    return "two heads need two calls, no tiles and one engine";
  const bool has_last_plain = spec.calls.back().wrap == 0;
  if (spec.is_tiled != 0 && !has_last_plain) return "tiles inside a checkpoint";
  if (spec.tile_wrap < 0 || spec.tile_wrap > 2) return "a number out of range";
  if (spec.tile_wrap != 0 && spec.is_tiled == 0) return "a checkpoint of tiles, and no tiles";
  if (spec.heads == 2 && (!has_last_plain || spec.calls[spec.calls.size() - 2].wrap != 0))
    return "a head inside a checkpoint";
  return {};
}

std::string layers_problem(const CaseSpec& spec) {
  for (const LayerSpec& layer : spec.layers)
    if (std::string problem = layer_problem(layer); !problem.empty()) return problem;
  const auto has_shape = [](const LayerSpec& layer) { return layer.shape != 0; };
  const auto multiplies = [](const MicroSpec& micro) {
    return static_cast<Bypass>(micro.has_bypass) == Bypass::weight;
  };
  const bool is_multiplied = spec.watches != 0 || std::ranges::any_of(spec.micros, multiplies);
  if (is_multiplied && std::ranges::any_of(spec.layers, has_shape))
    return "a weight of no matrix that is multiplied";
  return {};
}

std::string structure_problem(const CaseSpec& spec) {
  const bool is_simple = spec.engines == 1 && spec.is_tiled == 0;
  if (spec.skips_frames != 0 && !can_skip_frames(spec)) return "frames that cannot be skipped";
  const auto transforms = [](const MicroSpec& micro) { return micro.idle_forward >= 3; };
  const bool has_transform = std::ranges::any_of(spec.micros, transforms);
  if (!is_flag(spec.experts)) return "a number out of range";
  if (spec.experts != 0 && (!is_simple || has_transform || spec.input_grad == 0))
    return "experts need one engine, no tiles, and an input that needs a gradient";
  const auto rehooks = [](const MicroSpec& micro) { return micro.rehooks != 0; };
  if (std::ranges::any_of(spec.micros, rehooks) && (spec.experts == 0 || spec.stage != 3))
    return "hooks are made anew where a leaf module is named";
  if (spec.reads < 0 || spec.reads > static_cast<int>(spec.layers.size()))
    return "a read of no layer";
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  const auto gathers = [](const MicroSpec& micro) {
    return micro.gathers != 0 && static_cast<Gathers>(micro.gathers) != Gathers::looks_rounded;
  };
  if (is_autocast && std::ranges::any_of(spec.micros, gathers))
    return "autocast gathers weights rounded";
  const auto uses_second = [](MicroSpec micro) {
    micro.peeks = micro.repeats = micro.by_hand = micro.is_undivided = 0;
    return micro == MicroSpec{.losses = static_cast<int>(Losses::second)};
  };
  const bool has_more = spec.needs_all + spec.has_floor + spec.reorders + spec.first_ranks != 0;
  if (spec.container == 3 &&
      (spec.heads != 2 || has_more || !std::ranges::all_of(spec.micros, uses_second)))
    return "a loss without a graph that is used";
  if (!is_flag(spec.reads_late)) return "a number out of range";
  if (spec.reads_late != 0 &&
      (spec.reads == 0 || spec.granularity != 0 || spec.skips_frames != 0 || spec.heads == 2))
    return "nothing to read late";
  if (spec.reads == 0) return {};
  if (!is_simple || has_transform || is_autocast)
    return "a weight is read with one engine, no tiles and no autocast";
  const LayerSpec& layer = spec.layers[static_cast<std::size_t>(spec.reads) - 1];
  return layer.outputs > 0 ? "" : "a read of a weight without elements";
}

}  // namespace zeroproof::train
