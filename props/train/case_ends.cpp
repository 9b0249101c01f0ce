#include "props/train/case_ends.h"

#include <algorithm>
#include <cmath>

#include "props/train/case_additions.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kEndStream = 0x656e6473ULL;
constexpr std::int64_t kNeverGrows = 1000;

void reach_floor(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.is_dynamic = spec.has_floor = 1;
  spec.scaling = 0;
  for (MicroSpec& micro : spec.micros) {
    micro.overflow = micro.lost_overflow = micro.clears = micro.rescales = 0;
    micro.aborts = micro.aborts_on_loss = 0;
    if (draws.one_in(3))
      micro = {.overflow = some_call(spec, draws), .overflow_rank = draws.below(spec.ranks)};
  }
}

void renew_engines(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (i % static_cast<std::size_t>(spec.accumulation) != 0 || draws.one_in(3)) continue;
    if (!loads_away(static_cast<Restores>(micro.restores))) micro.restores = draws.between(1, 3);
    micro.renews = 1;
  }
}

void differentiate_aside(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.interrupt = static_cast<int>(draws.one_in(3) ? Interrupt::aside : Interrupt::fails);
    micro.interrupt_at = some_call(spec, draws);
  }
}

void discard_changes(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.gathers = static_cast<int>(Gathers::discards);
}

void clear_in_blocks(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.clears = 2;
    micro.block = static_cast<int>(spec.stage < 2 ? Block::no_sync : Block::coalesced);
  }
}

void defer_unmanaged(CaseSpec& spec, Draws& draws) {
  spec.is_unmanaged = 1;
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.block = static_cast<int>(Block::no_sync);
}

// One whose gradient is infinite whatever else the program does.
bool overflows_surely(const CaseSpec& spec, const MicroSpec& micro) {
  const MicroSpec plain = {.overflow = micro.overflow, .overflow_rank = micro.overflow_rank};
  if (micro.overflow < 1 || micro.overflow > static_cast<int>(spec.calls.size())) return false;
  const CallSpec& call = spec.calls[static_cast<std::size_t>(micro.overflow) - 1];
  const LayerSpec& layer = spec.layers[static_cast<std::size_t>(call.layer)];
  return micro == plain && call.wrap == 0 && layer.outputs > 0 &&
         layer.is_frozen + layer.is_weight_frozen == 0;
}

std::string floor_problem(const CaseSpec& spec) {
  if (spec.has_floor == 0) return {};
  const auto is_known = [&](const MicroSpec& micro) {
    if (micro.lost_overflow + micro.clears != 0 || has_abort(micro)) return false;
    return micro.overflow == 0 || overflows_surely(spec, micro);
  };
  const bool is_right = static_cast<Precision>(spec.precision) == Precision::fp16 &&
                        spec.is_dynamic != 0 && spec.scaling == 0 && spec.owns_scale == 0 &&
                        spec.heads == 1 && spec.engines == 1 && spec.is_tiled == 0 &&
                        spec.needs_all == 0 && std::ranges::all_of(spec.micros, is_known);
  return is_right ? "" : "a loss scale that may fall";
}

}  // namespace

CaseSpec with_ends(const CaseSpec& spec, std::uint64_t seed) {
  constexpr Addition kEnds[] = {{4, reach_floor},         {4, renew_engines},
                                {4, differentiate_aside}, {4, discard_changes},
                                {4, clear_in_blocks},     {4, defer_unmanaged}};
  Draws draws(seed ^ kEndStream);
  return draws.one_in(3) ? with_each(spec, kEnds, draws) : spec;
}

std::string end_problem(const CaseSpec& spec) {
  if (!is_flag(spec.has_floor)) return "a number out of range";
  const auto rescales = [](const MicroSpec& micro) { return micro.rescales != 0; };
  const bool is_told = spec.sets_boundary == 3 || std::ranges::any_of(spec.micros, rescales);
  for (const MicroSpec& micro : spec.micros) {
    if (!is_flag(micro.renews)) return "a number out of range";
    if (micro.renews == 0) continue;
    if (!loads_away(static_cast<Restores>(micro.restores)) || spec.engines > 1)
      return "an engine that nothing is loaded by";
    // What was said once is said to another one.
    if (is_told || micro.registers != 0) return "an engine that was told more";
  }
  return floor_problem(spec);
}

bool ends_refused(const CaseSpec& spec, std::size_t first_micro) {
  if (spec.has_floor == 0) return false;
  const auto first = spec.micros.begin() + static_cast<std::ptrdiff_t>(first_micro);
  return std::any_of(first, first + spec.accumulation,
                     [](const MicroSpec& micro) { return micro.overflow != 0; });
}

void set_floor(const CaseSpec& spec, Fp16Config& fp16) {
  if (spec.has_floor == 0) return;
  fp16.min_loss_scale = std::ldexp(1.0, static_cast<int>(fp16.initial_scale_power));
  fp16.loss_scale_window = kNeverGrows;
}

}  // namespace zeroproof::train
