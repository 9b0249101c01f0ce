#include "props/train/case_habits.h"

#include <algorithm>

#include "props/train/case_rates.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kHabitStream = 0x686162697473ULL;
constexpr int kFallsBelowOne = 18;  // overflows, for a GradScaler's first scale

// A precision that needs no loss scale.
void take_unscaled(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(draws.one_in(2) ? Precision::float32 : Precision::bf16);
}

void sync_in_part(CaseSpec& spec, Draws& draws) {
  spec.stage = draws.below(2);
  spec.accumulation = 2;
  spec.is_dynamic = spec.scaling = 0;
  if (spec.micros.size() % 2 != 0) spec.micros.push_back(spec.micros.back());
  for (MicroSpec& micro : spec.micros) {
    micro.interrupt = micro.interrupt_at = micro.outstanding = micro.repeats = 0;
    micro.block = static_cast<int>(draws.one_in(2) ? Block::no_sync_forward : Block::none);
  }
  for (std::size_t i = 0; i < spec.micros.size(); i += 2)
    if (draws.one_in(2)) spec.micros[i].block = static_cast<int>(Block::no_sync_backwards);
}

void differentiate_again(CaseSpec& spec, Draws& draws) {
  spec.is_dynamic = spec.scaling = 0;
  const bool creates = spec.is_manual == 0 && draws.one_in(2);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.again = 1;
    micro.creates = creates ? 1 : 0;
    micro.interrupt = micro.interrupt_at = micro.has_bypass = 0;
  }
}

void overflow_for_long(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::autocast);
  spec.has_grad_scaler = spec.accumulation = 1;
  const MicroSpec overflowing = {.overflow = some_call(spec, draws)};
  spec.micros.assign(kFallsBelowOne, overflowing);
  spec.micros.back() = {};
}

void spike_otherwise(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (micro.overflow == 0 && draws.one_in(2)) micro.overflow = some_call(spec, draws);
    micro.overflow_kind = draws.between(1, 2);
  }
}

// In the end, so that nothing comes behind what it spoils.
void overflow_unseen(CaseSpec& spec, Draws& draws) {
  take_unscaled(spec, draws);
  spec.is_unchecked = static_cast<Precision>(spec.precision) == Precision::bf16 ? 1 : 0;
  spec.clip = draws.below(3);
  spec.owns_scale = spec.is_dynamic = spec.scaling = 0;
  MicroSpec& last = spec.micros.back();
  last.overflow = some_call(spec, draws);
  last.overflow_kind = draws.below(3);
  last.asks = 0;
}

void forgive_twice(CaseSpec& spec, Draws& draws) {
  move_loss_scale(spec, draws, 4);
  spec.scaling = 4;
  for (std::size_t window = 0; window < 3; ++window) overflow_in(spec, draws, window);
}

void add_twins(CaseSpec& spec, Draws& draws) {
  spec.is_dynamic = spec.scaling = 0;
  for (LayerSpec& layer : spec.layers) {
    if (draws.one_in(3)) continue;
    make_raw(layer);
    layer.has_twin = 1;
  }
}

void scale_second(CaseSpec& spec, Draws& draws) {
  spec.engines = 2;
  take_unscaled(spec, draws);
  spec.owns_scale = spec.is_dynamic = spec.scaling = spec.first_ranks = 0;
  spec.first_stage = -1;
  spec.scales_second = 1;
  for (MicroSpec& micro : spec.micros) {
    micro.interrupt = micro.interrupt_at = micro.by_hand = micro.past_engine = micro.restores = 0;
    micro.overflow = micro.lost_overflow = micro.rescales = micro.outstanding = 0;
    micro.misuse = draws.one_in(3) ? static_cast<int>(Misuse::unscaled_second) : 0;
  }
}

void scale_anything(CaseSpec& spec, Draws& draws) {
  spec.engines = 1;
  take_unscaled(spec, draws);
  spec.is_dynamic = spec.scaling = 0;
  spec.owns_scale = draws.between(1, 2);
}

// A fixed one that changes nothing: it is asked for all the same, and its steps are looked at.
void scale_by_one(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.is_dynamic = spec.scaling = spec.owns_scale = spec.has_floor = spec.is_lifted = 0;
  spec.brims = 0;
  spec.scales_by_one = 1;
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2))
      micro.overflow = some_call(spec, draws);
    else if (draws.one_in(2))
      micro.misuse = static_cast<int>(Misuse::unscaled_manual);
  }
}

void scale_late(CaseSpec& spec, Draws& draws) {
  spec.engines = 1;
  take_unscaled(spec, draws);
  spec.is_dynamic = spec.scaling = spec.owns_scale = spec.masters = 0;
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.misuse = static_cast<int>(Misuse::late_loss_scale);
}

void own_twice(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::autocast);
  spec.engines = 1;
  spec.stage = draws.between(1, 2);
  spec.ranks = std::max(spec.ranks, 2);
  spec.is_unsafe = spec.granularity = spec.first_ranks = 0;
  spec.first_stage = -1;
  spec.packs = 2;
}

// Of two losses the model returns one for a log alone.
void log_first(CaseSpec& spec, Draws& draws) {
  take_two_heads(spec);
  spec.container = 3;
  spec.is_manual = spec.stage == 0 ? 0 : draws.flag(2);
  spec.is_scattered = draws.flag(2);
  for (MicroSpec& micro : spec.micros) {
    micro = {.losses = static_cast<int>(Losses::second), .repeats = draws.flag(3)};
  }
}

void be_strict(CaseSpec& spec, Draws& draws) {
  spec.is_strict = 1;
  spec.needs_all = spec.is_offloaded = 0;
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(3)) micro.skips = some_call(spec, draws);
}

// The weight of a layer is that of a module behind all others, too.
void tie_weights(CaseSpec& spec, Draws& draws) {
  spec.engines = spec.heads = 1;
  spec.is_tiled = spec.tile_wrap = spec.skips_frames = spec.granularity = 0;
  if (spec.reads == 0) spec.reads = some_layer(spec, draws);
  spec.holds = 0;
  spec.reads_late = 1;
  spec.registers = CaseSpec::kTied;
}

// As who trains a part of a model for a while.
void freeze_for_a_while(CaseSpec& spec, Draws& draws) {
  spec.engines = 1;
  spec.is_tiled = spec.tile_wrap = spec.skips_frames = spec.experts = spec.leaf_by = 0;
  for (CallSpec& call : spec.calls) call.wrap = call.is_joined = 0;
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.freezes = some_layer(spec, draws);
    micro.outstanding = micro.interrupt = micro.interrupt_at = micro.misuse = micro.past_engine = 0;
    micro.aborts = micro.aborts_at_weight = micro.throws = micro.aborts_inside = micro.branches = 0;
    micro.has_bypass = micro.overflow = micro.lost_overflow = micro.shortage = micro.detour = 0;
  }
}

void fill_to_brim(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.ranks = draws.of({2, 2, 4});
  spec.engines = spec.heads = spec.accumulation = spec.sequence = spec.tensor = 1;
  spec.is_dynamic = spec.scaling = spec.owns_scale = spec.has_floor = spec.is_sum = 0;
  spec.is_tiled = spec.tile_wrap = spec.reads = spec.reads_late = spec.holds = spec.registers = 0;
  spec.returns = spec.experts = spec.leaf_by = spec.is_lifted = 0;
  spec.predivides = spec.prescales = 0;
  spec.calls.resize(1);
  for (LayerSpec& layer : spec.layers) layer.has_twin = 0;
  spec.micros.resize(std::min<std::size_t>(spec.micros.size(), 2));
  for (MicroSpec& micro : spec.micros) micro = {.peeks = micro.peeks, .asks = micro.asks % 2};
  spec.brims = draws.between(1, 2);
}

// What has no room or bits on its wire before it is divided.
void fill_narrow_wire(CaseSpec& spec, Draws& draws) {
  fill_to_brim(spec, draws);
  spec.precision = static_cast<int>(Precision::float32);
  spec.brims = 4;
  spec.stage = draws.between(1, 2);
  spec.is_wire_narrow = draws.between(1, 2);
  spec.ranks = spec.is_wire_narrow == 1 ? 3 : draws.of({2, 3, 4});
  spec.reduces_whole = spec.reduces_to_owners = spec.first_ranks = spec.is_wide = 0;
  spec.first_stage = -1;
}

void grow_scale(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::autocast);
  spec.has_grad_scaler = spec.tensor = 1;
  spec.first_ranks = spec.reorders = 0;
  spec.first_stage = -1;
  spec.grown = draws.between(1, 3);
  const auto first = spec.micros;
  while (spec.windows() < 4) spec.micros.insert(spec.micros.end(), first.begin(), first.end());
  for (MicroSpec& micro : spec.micros) micro.overflow = micro.lost_overflow = 0;
  if (draws.one_in(2)) spec.micros[draws.one_in(2) ? 0 : 1].overflow = some_call(spec, draws);
}

void keep_dimensions(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) micro.keeps_dimension = draws.one_in(3) ? 0 : 1;
}

void ask_to_capture(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.misuse = static_cast<int>(Misuse::capture);
}

void ask_behind(CaseSpec& spec, Draws&) {
  for (MicroSpec& micro : spec.micros) micro.asks = 3;
}

void shape_weights(CaseSpec& spec, Draws& draws) {
  for (LayerSpec& layer : spec.layers) {
    if (draws.one_in(3)) continue;
    make_raw(layer);
    layer.shape = draws.between(1, 3);
    layer.is_watched = 0;
    if (layer.shape == 3) layer.outputs = layer.inputs = 1;
  }
}

void maximize(CaseSpec& spec, Draws& draws) {
  spec.rule = 3;
  spec.is_sgd = draws.flag(2);
}

// --- what can be ------------------------------------------------------------------------------

std::string block_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const auto block = static_cast<Block>(micro.block);
  if (block != Block::no_sync_forward && block != Block::no_sync_backwards) return {};
  // Behind a scale that grows there is no room for what no rank has divided.
  const bool is_right = spec.stage < 2 && spec.is_dynamic == 0 &&
                        spec.is_tiled + spec.takes_turns == 0 &&
                        micro.interrupt + micro.outstanding + micro.repeats == 0;
  return is_right ? "" : "no_sync around what is not there";
}

std::string again_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (!is_flag(micro.again)) return "a number out of range";
  // Behind a scale that grows there is no room for twice as much.
  const bool is_right = spec.engines == 1 && spec.is_dynamic == 0 &&
                        spec.is_tiled + spec.skips_frames == 0 && spec.is_wide == 0 &&
                        micro.interrupt + micro.has_bypass == 0 &&
                        micro.shortage + micro.drops_on + micro.branches == 0;
  return micro.again == 0 || is_right ? "" : "a loss that has one backward";
}

// Something else is trained, and nothing else is special.
std::string freeze_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.freezes < 0 || micro.freezes > static_cast<int>(spec.layers.size()))
    return "a number out of range";
  if (micro.freezes == 0) return {};
  const auto is_left = [&](const CallSpec& call) {
    const LayerSpec& layer = spec.layers[static_cast<std::size_t>(call.layer)];
    return call.layer + 1 != micro.freezes && layer.is_frozen == 0 && layer.outputs > 0 &&
           &call - spec.calls.data() + 1 != micro.skips;
  };
  const bool is_right =
      spec.engines == 1 && spec.heads == 1 &&
      spec.is_tiled + spec.skips_frames + spec.experts + spec.needs_all == 0 &&
      !has_checkpoints(spec) && micro.wrapped == 0 && micro.outstanding + micro.interrupt == 0 &&
      micro.misuse + micro.past_engine + micro.detour == 0 && !has_abort(micro) &&
      micro.throws == 0 &&
      micro.has_bypass + micro.overflow + micro.lost_overflow + micro.branches == 0;
  return is_right && std::ranges::any_of(spec.calls, is_left) ? ""
                                                              : "a layer that is frozen meanwhile";
}

// One gradient of each weight in a window, and the loss scale of exact data.
std::string brim_problem(const CaseSpec& spec) {
  if (spec.brims < 0 || spec.brims > 4) return "a number out of range";
  const auto precision = static_cast<Precision>(spec.precision);
  const bool is_shared = spec.brims == 3 && spec.sequence == 2 && spec.ranks == 4 &&
                         spec.is_wire_float32 + spec.accumulates_float32 + spec.masters == 0 &&
                         (spec.stage == 1 || spec.stage == 2) && spec.reduces_to_owners == 0 &&
                         precision == Precision::bf16;
  const bool is_alone = spec.brims < 3 && spec.sequence == 1 && precision == Precision::fp16;
  // Divided behind the narrowing bf16 rounds thirds alone.
  const auto wire = static_cast<NarrowWire>(spec.is_wire_narrow);
  const bool is_narrow = spec.brims == 4 && spec.sequence == 1 && wire != NarrowWire::none &&
                         (spec.stage == 1 || spec.stage == 2) && spec.reduces_whole == 0 &&
                         spec.reduces_to_owners == 0;
  const bool has_ranks = is_narrow ? wire == NarrowWire::bfloat16 ? spec.ranks == 3 : spec.ranks > 1
                                   : spec.ranks == 2 || spec.ranks == 4;
  const bool is_right =
      (is_shared || is_alone || is_narrow) && has_ranks && spec.accumulation == 1 &&
      spec.uses() == 1 && spec.forwards() == 1 && spec.tensor == 1 && spec.first_ranks == 0 &&
      spec.is_dynamic + spec.owns_scale + spec.has_floor + spec.is_sum + spec.needs_all == 0 &&
      spec.is_lifted + spec.predivides + spec.prescales + spec.is_tiled + spec.experts == 0;
  return spec.brims == 0 || is_right ? "" : "gradients that have no room";
}

std::string growth_problem(const CaseSpec& spec) {
  if (spec.grown < 0 || spec.grown > CaseSpec::kGrowthSteps) return "a number out of range";
  const bool is_right =
      spec.has_grad_scaler != 0 && spec.tensor == 1 && spec.first_ranks + spec.reorders == 0;
  return spec.grown == 0 || is_right ? "" : "a scale that does not grow";
}

std::string scale_problem(const CaseSpec& spec) {
  if (!is_flag(spec.scales_second) || !is_flag(spec.scales_by_one)) return "a number out of range";
  const bool is_fixed = static_cast<Precision>(spec.precision) == Precision::fp16 &&
                        spec.is_dynamic + spec.owns_scale + spec.is_lifted + spec.brims == 0;
  if (spec.scales_by_one != 0 && !is_fixed) return "a loss scale that is not fixed";
  if (spec.scales_second == 0) return {};
  const auto precision = static_cast<Precision>(spec.precision);
  const auto leaves = [](const MicroSpec& micro) {
    return micro.interrupt + micro.by_hand + micro.past_engine + micro.restores + micro.overflow +
               micro.lost_overflow + micro.outstanding !=
           0;
  };
  const bool is_right = (precision == Precision::float32 || precision == Precision::bf16) &&
                        spec.engines == 2 && spec.owns_scale + spec.first_ranks == 0 &&
                        std::ranges::none_of(spec.micros, leaves);
  return is_right ? "" : "a loss scale of a second engine";
}

}  // namespace

Additions habit_additions() {
  static constexpr Addition kHabits[] = {
      {4, sync_in_part},       {4, differentiate_again}, {12, overflow_for_long},
      {4, spike_otherwise},    {6, forgive_twice},       {4, add_twins},
      {6, scale_second},       {6, scale_anything},      {4, ask_behind},
      {6, maximize},           {6, overflow_unseen},     {6, tie_weights},
      {6, freeze_for_a_while}, {6, fill_to_brim},        {5, grow_scale},
      {6, keep_dimensions},    {8, ask_to_capture},      {6, shape_weights},
      {6, scale_by_one},       {6, be_strict},           {6, scale_late},
      {6, own_twice},          {6, log_first},           {8, fill_narrow_wire}};
  return {kHabitStream, 4, kHabits};
}

std::string habit_problem(const CaseSpec& spec) {
  for (const MicroSpec& micro : spec.micros) {
    if (micro.overflow_kind < 0 || micro.overflow_kind > 2 || !is_flag(micro.keeps_dimension))
      return "a number out of range";
    if (std::string problem = block_problem(spec, micro); !problem.empty()) return problem;
    if (std::string problem = again_problem(spec, micro); !problem.empty()) return problem;
    if (std::string problem = freeze_problem(spec, micro); !problem.empty()) return problem;
  }
  // Their gradients are twice as large, which there is no room for in the end.
  const auto is_twin = [](const LayerSpec& layer) { return layer.has_twin != 0; };
  if (spec.is_dynamic != 0 && std::ranges::any_of(spec.layers, is_twin))
    return "twins under a loss scale that grows";
  if (std::string problem = brim_problem(spec); !problem.empty()) return problem;
  if (std::string problem = growth_problem(spec); !problem.empty()) return problem;
  return scale_problem(spec);
}

}  // namespace zeroproof::train
