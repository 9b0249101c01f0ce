#include "props/train/case_turns.h"

#include <algorithm>

#include "props/train/case_additions.h"
#include "props/train/case_rates.h"
#include "props/train/case_shape.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kTurnStream = 0x7475726e73ULL;

bool is_fp16(const CaseSpec& spec) {
  return static_cast<Precision>(spec.precision) == Precision::fp16;
}

Interrupt interrupt_of(const MicroSpec& micro) {
  return static_cast<Interrupt>(micro.interrupt);
}

void take_two_engines(CaseSpec& spec) {
  make_plain(spec);
  spec.engines = 2;
  spec.is_manual = spec.granularity = spec.skips_frames = 0;
  spec.stage = std::max(spec.stage, 1);
}

void list_frozen(CaseSpec& spec, Draws& draws) {
  spec.groups = draws.between(2, 3);
  spec.lists_frozen = 1;
  for (LayerSpec& layer : spec.layers)
    if (draws.one_in(3)) layer.is_frozen = 1 - layer.is_weight_frozen;
  if (draws.one_in(2)) load_away(spec.micros.front(), draws);
}

void take_turns(CaseSpec& spec, Draws& draws) {
  take_two_engines(spec);
  spec.takes_turns = 1;
  spec.is_manual = draws.flag(3);
  spec.input_grad = draws.flag(2);
  for (CallSpec& call : spec.calls) call.wrap = draws.one_in(2) ? draws.below(3) : 0;
  for (MicroSpec& micro : spec.micros) micro.interrupt = micro.interrupt_at = micro.keeps = 0;
  if (spec.is_manual == 0 && draws.one_in(3)) set_interrupt(spec, draws, Interrupt::fails);
  if (!draws.one_in(3)) return;
  spec.stage = spec.is_manual = 0;
  for (MicroSpec& micro : spec.micros) micro.misuse = static_cast<int>(Misuse::others_loss);
}

void break_second_inside(CaseSpec& spec, Draws& draws) {
  take_two_engines(spec);
  spec.is_manual = spec.is_unmanaged = 0;
  spec.input_grad = draws.flag(2);
  spec.accumulation = 1;
  if (draws.one_in(2)) spec.stage = 3;
  for (MicroSpec& micro : spec.micros) micro.repeats = micro.outstanding = 0;
  set_interrupt(spec, draws, Interrupt::breaks);
}

void fail_joined(CaseSpec& spec, Draws& draws) {
  take_two_engines(spec);
  set_interrupt(spec, draws, Interrupt::joined);
}

void step_second_inside(CaseSpec& spec, Draws& draws) {
  take_two_engines(spec);
  spec.is_manual = spec.is_unmanaged = spec.takes_turns = spec.first_ranks = 0;
  spec.needs_all = spec.has_floor = 0;
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro = {.interrupt = static_cast<int>(Interrupt::steps),
             .interrupt_at = some_call(spec, draws)};
  }
}

void run_ahead(CaseSpec& spec, Draws& draws) {
  if (spec.accumulation == 1) {
    spec.accumulation = 2;
    spec.micros.insert(spec.micros.end(), spec.micros.begin(), spec.micros.end());
  }
  if (spec.stage > 0) spec.is_manual = draws.flag(2);
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (!is_first(spec, i + 1) && !draws.one_in(3))
      spec.micros[i].outstanding = static_cast<int>(Outstanding::ahead);
}

void interleave(CaseSpec& spec, Draws& draws) {
  take_two_heads(spec);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.losses = 0;
    micro.outstanding = static_cast<int>(Outstanding::interleaved);
  }
}

// The same, and nothing else that a graph which is kept could be given up for.
void interleave_alone(CaseSpec& spec, Draws& draws) {
  take_two_heads(spec);
  spec.stage = 3;
  if (spec.ranks == 1) spec.ranks = 2;
  spec.prefetch = spec.persistence = spec.granularity = spec.skips_frames = spec.has_floor = 0;
  spec.reads = spec.reads_late = spec.holds = spec.registers = spec.returns = spec.needs_all = 0;
  spec.experts = spec.leaf_by = spec.first_ranks = spec.reorders = 0;
  spec.live = CaseSpec::kManyElements;
  spec.layers.resize(3);
  spec.calls = {{.layer = 0}, {.layer = 1}, {.layer = 2}};
  for (MicroSpec& micro : spec.micros) {
    micro = {.peeks = draws.flag(3), .asks = draws.flag(3)};
    micro.outstanding = static_cast<int>(Outstanding::interleaved);
  }
}

void keep_two_of_three(CaseSpec& spec, Draws& draws) {
  take_two_heads(spec);
  spec.stage = 3;
  spec.persistence = spec.granularity = spec.skips_frames = spec.plain_linear = 0;
  spec.reads = spec.reads_late = spec.holds = spec.registers = spec.returns = spec.needs_all = 0;
  spec.experts = spec.leaf_by = spec.is_dynamic = spec.scaling = spec.has_floor = 0;
  spec.accumulation = 1;
  spec.ranks = draws.of({1, 2, 2});
  spec.layers.resize(3);
  for (LayerSpec& layer : spec.layers) {
    layer.is_raw = layer.has_twin = layer.shape = layer.is_frozen = layer.is_weight_frozen = 0;
    layer.outputs = std::max(layer.outputs, 1);
  }
  spec.layers[2].inputs = spec.layers[2].outputs = 4;
  spec.calls = {{.layer = 0}, {.layer = 1}, {.layer = 2}};
  const LayerSpec& first = spec.layers[1];
  spec.live = spec.layers[0].elements() + first.elements() + draws.below(2);
  spec.micros.resize(2);
  for (MicroSpec& micro : spec.micros)
    micro = {.outstanding = static_cast<int>(Outstanding::three), .peeks = draws.flag(3)};
}

void abort_inside(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (draws.one_in(3)) continue;
    const bool can_wait = spec.stage <= 1 && !is_first(spec, i + 1);
    if (micro.block == 0 || micro.block == 3) micro.block = can_wait ? 2 : 1;
    micro.aborts = micro.aborts_on_loss = 0;
    micro.aborts_inside = some_call(spec, draws);
    micro.repeats = 1;
  }
}

void ask_one_rank(CaseSpec& spec, Draws& draws) {
  spec.ranks = 1;
  for (MicroSpec& micro : spec.micros) {
    micro.overflow = micro.overflow_rank = micro.skips_on = 0;
    micro.asks = draws.flag(2);
  }
}

void ask_in_blocks(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (!is_first(spec, i) || draws.one_in(3)) continue;
    micro.block = static_cast<int>(Block::coalesced);
    micro.asks = 2;
    micro.overflow = 0;
  }
}

void litter(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) micro.litters = draws.flag(2);
}

void leave_engine(CaseSpec& spec, Draws& draws) {
  spec.is_manual = 1;
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2))
      micro = {.idle_forward = micro.idle_forward, .peeks = micro.peeks, .past_engine = 3};
}

// A loss is scaled, and what came before it is dropped.
void clear_scaled(CaseSpec& spec, Draws& draws) {
  spec.is_manual = 1;
  spec.precision = static_cast<int>(Precision::fp16);
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(3))
      micro = {.clears = 5};
    else if (draws.one_in(2))
      micro.clears = draws.between(3, 4);
}

void rescale_inside(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  set_interrupt(spec, draws, Interrupt::rescale);
}

void train_inside(CaseSpec& spec, Draws& draws) {
  spec.is_manual = 0;
  set_interrupt(spec, draws, Interrupt::own);
}

void rescale_behind_abort(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.is_dynamic = spec.scaling = 0;
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (!is_first(spec, i) || draws.one_in(3)) continue;
    micro.aborts = some_call(spec, draws);
    micro.is_uncleared = 1;
    micro.clears = 0;
    micro.rescales = 2;
  }
}

// --- what can be ------------------------------------------------------------------------------

bool is_plain_call(const CaseSpec& spec, const MicroSpec& micro, std::size_t call) {
  return spec.calls[call].wrap == 0 && micro.skips != static_cast<int>(call) + 1 &&
         is_trained(spec, spec.calls[call]);
}

std::string turn_interrupt_problem(const CaseSpec& spec, const MicroSpec& micro) {
  switch (interrupt_of(micro)) {
    case Interrupt::rescale:
      return is_fp16(spec) ? "" : "a loss scale that may change";
    case Interrupt::own:
      return spec.stage < 3 && spec.is_manual + spec.is_unmanaged == 0 && !has_checkpoints(spec) &&
                     micro.by_hand + micro.creates + micro.keeps + micro.wrapped == 0
                 ? ""
                 : "a backward inside another of the same engine";
    case Interrupt::joined:
      return spec.takes_turns == 0 && spec.stage < 3 ? "" : "a loss that is not joined";
    default:
      return {};
  }
}

std::string inside_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.aborts_inside < 0 || micro.aborts_inside > static_cast<int>(spec.calls.size()) ||
      !is_flag(micro.litters))
    return "a number out of range";
  const bool is_late = static_cast<Misuse>(micro.misuse) == Misuse::late_loss_scale;
  if (micro.litters != 0 && (spec.stage == 3 || spec.has_floor != 0 || is_late))
    return "a gradient that nobody may set";
  const auto block = static_cast<Block>(micro.block);
  const bool has_block = block == Block::coalesced || block == Block::no_sync;
  // A step right behind it would be one with an aborted backward.
  const bool is_simple = has_block && micro.repeats != 0 && spec.is_tiled == 0 &&
                         spec.has_floor == 0 &&
                         micro.aborts + micro.aborts_on_loss + micro.interrupt + micro.wrapped +
                                 micro.creates + micro.skips_on ==
                             0;
  return micro.aborts_inside == 0 || is_simple ? "" : "a backward that fails in no block";
}

std::string question_problem(const CaseSpec& spec, const MicroSpec& micro, bool is_first_micro) {
  if (micro.asks == 2 && (static_cast<Block>(micro.block) != Block::coalesced || !is_first_micro ||
                          (micro.aborts + micro.aborts_on_loss != 0 && micro.is_uncleared != 0) ||
                          micro.is_undivided + micro.overflow + micro.lost_overflow != 0))
    return "sums that nobody knows";
  if (micro.rescales != 2) return {};
  const bool is_right = micro.aborts > 0 && micro.aborts <= static_cast<int>(spec.calls.size()) &&
                        is_plain_call(spec, micro, static_cast<std::size_t>(micro.aborts) - 1) &&
                        micro.is_uncleared != 0 && micro.clears + micro.wrapped == 0 &&
                        spec.heads == 1 && spec.engines == 1 && is_first_micro;
  return is_right ? "" : "a loss scale that a window has";
}

// Where the next micro-batch's forward is one that can come earlier.
std::string ahead_problem(const CaseSpec& spec, std::size_t i) {
  if (!is_ahead(spec.micros[i])) return {};
  if (is_first(spec, i + 1) || spec.is_tiled + spec.skips_frames != 0)
    return "a forward ahead of its window";
  const MicroSpec& next = spec.micros[i + 1];
  const bool is_right = next.wrapped + next.interrupt + next.registers + next.rehooks +
                                next.aborts + next.aborts_on_loss + next.clears + next.throws +
                                next.freezes ==
                            0 &&
                        next.past_engine != 3 && next.gathers <= 1 &&
                        !(next.idle_forward >= 3 && next.has_bypass != 0) &&
                        static_cast<Detour>(next.detour) != Detour::load;
  return is_right ? "" : "a forward that comes when its turn is";
}

std::string three_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const MicroSpec plain = {.outstanding = static_cast<int>(Outstanding::three),
                           .peeks = micro.peeks,
                           .asks = micro.asks};
  const auto is_raw = [](const LayerSpec& layer) { return layer.is_raw != 0; };
  const bool is_right = micro == plain && micro.asks < 2 && spec.stage == 3 && spec.heads == 2 &&
                        spec.plain_linear + spec.skips_frames + spec.experts + spec.reads == 0 &&
                        spec.granularity == 0 && !has_checkpoints(spec) &&
                        std::ranges::none_of(spec.layers, is_raw);
  return micro.outstanding != plain.outstanding || is_right ? ""
                                                            : "graphs that keep something else";
}

std::string outside_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (static_cast<Outstanding>(micro.outstanding) == Outstanding::interleaved &&
      (spec.heads != 2 || micro.losses + micro.wrapped != 0))
    return "nothing to interleave";
  const MicroSpec plain = {.idle_forward = micro.idle_forward,
                           .gathers = micro.gathers,
                           .restores = micro.restores,
                           .peeks = micro.peeks,
                           .past_engine = 3,
                           .asks = micro.asks};
  return micro.past_engine != 3 || micro == plain ? "" : "more than a backward past the engine";
}

}  // namespace

Additions turn_additions() {
  static constexpr Addition kTurns[] = {
      {4, list_frozen},  {4, take_turns},           {5, fail_joined},
      {4, run_ahead},    {4, interleave},           {4, interleave_alone},
      {4, abort_inside}, {4, ask_one_rank},         {4, ask_in_blocks},
      {5, litter},       {5, leave_engine},         {4, rescale_inside},
      {4, train_inside}, {5, rescale_behind_abort}, {5, step_second_inside},
      {5, clear_scaled}, {4, break_second_inside},  {5, keep_two_of_three}};
  return {kTurnStream, 3, kTurns};
}

std::string turn_problem(const CaseSpec& spec) {
  if (!is_flag(spec.lists_frozen) || !is_flag(spec.takes_turns)) return "a number out of range";
  if (spec.lists_frozen != 0 && spec.groups == 1) return "no groups that could list it";
  if (spec.takes_turns != 0 && (spec.engines != 2 || spec.is_unmanaged + spec.is_tiled != 0))
    return "nobody to take turns with";
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    const MicroSpec& micro = spec.micros[i];
    if (spec.takes_turns != 0 && micro.keeps != 0) return "graphs of two engines in turns";
    for (const std::string& problem :
         {turn_interrupt_problem(spec, micro), inside_problem(spec, micro),
          question_problem(spec, micro, is_first(spec, i)), ahead_problem(spec, i),
          outside_problem(spec, micro), three_problem(spec, micro)})
      if (!problem.empty()) return problem;
  }
  return {};
}

bool knows_gradients(const CaseSpec& spec) {
  const auto is_wide = [](const MicroSpec& micro) {
    return micro.is_undivided + micro.overflow + micro.lost_overflow != 0;
  };
  const auto has_block = [](const MicroSpec& micro) { return micro.block != 0; };
  return spec.ranks == 1 && spec.is_unmanaged == 0 &&
         (spec.stage >= 2 || std::ranges::none_of(spec.micros, has_block)) &&
         std::ranges::none_of(spec.micros, is_wide);
}

}  // namespace zeroproof::train
