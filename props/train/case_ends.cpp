#include "props/train/case_ends.h"

#include <algorithm>
#include <cmath>

#include "props/train/case_additions.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kEndStream = 0x656e6473ULL;
constexpr std::int64_t kNeverGrows = 1000;
constexpr int kPersistsAll = 64;  // elements of the largest layer

// The first overflow is forgiven, or none.
int scaling_of_floor(const CaseSpec& spec) {
  return spec.has_floor == 3 ? 2 : 0;
}

void reach_floor(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.is_dynamic = 1;
  spec.has_floor = draws.between(1, 3);
  spec.scaling = scaling_of_floor(spec);
  for (MicroSpec& micro : spec.micros) {
    micro.overflow = micro.lost_overflow = micro.clears = micro.rescales = 0;
    micro.aborts = micro.aborts_on_loss = 0;
    if (draws.one_in(spec.has_floor == 1 ? 3 : 2))
      micro = {.overflow = some_call(spec, draws), .overflow_rank = draws.below(spec.ranks)};
  }
}

void renew_some_engines(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (!is_first(spec, i) || draws.one_in(3)) continue;
    load_away(micro, draws);
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

// Saved again and again, under two tags that begin alike.
void save_tags(CaseSpec& spec, Draws&) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (is_first(spec, i)) spec.micros[i].restores = static_cast<int>(Restores::tagged);
}

// The loss scale forgives the first overflow, grows, and forgives another one.
void wait_for_growth(CaseSpec& spec, Draws& draws) {
  move_loss_scale(spec, draws, 5);
  for (const std::size_t which : {0, 3}) overflow_in(spec, draws, which);
}

// A forward is given up behind a visit of what it has gathered.
void visit_abandoned(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.abandons = 2;
    if (micro.gathers == 0) micro.gathers = draws.between(1, 3);
  }
}

void leave_in_checkpoints(CaseSpec& spec, Draws& draws) {
  spec.is_manual = 1;
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.past_engine = draws.of({2, 4});
}

// The scale of a window is asked to change behind a backward of it that came to nothing.
void rescale_late(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    if (is_first(spec, i)) continue;
    MicroSpec& micro = spec.micros[i];
    micro.misuse = static_cast<int>(Misuse::late_loss_scale);
    if (!has_abort(micro)) micro.aborts = some_call(spec, draws);
    micro.is_uncleared = 1;
  }
}

// A forward fails inside the module that owns what persists.
void fail_with_persistent(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.persistence = kPersistsAll;
  spec.persistence_all = CaseSpec::kManyElements;
  for (LayerSpec& layer : spec.layers) layer.is_raw = draws.flag(2);
  for (MicroSpec& micro : spec.micros) {
    micro.gathers = micro.looks = 0;
    if (draws.one_in(2)) micro.throws = some_layer(spec, draws);
  }
}

void drop_graphs(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.keeps = 3;
}

void mix_backwards(CaseSpec& spec, Draws& draws) {
  spec.is_manual = 1;
  for (MicroSpec& micro : spec.micros) micro.is_undivided = draws.flag(2);
}

// One whose gradient is infinite whatever else the program does.
bool overflows_surely(const CaseSpec& spec, const MicroSpec& micro) {
  const MicroSpec plain = {.overflow = micro.overflow,
                           .overflow_rank = micro.overflow_rank,
                           .overflow_kind = micro.overflow_kind};
  if (micro.overflow < 1 || micro.overflow > static_cast<int>(spec.calls.size())) return false;
  const CallSpec& call = spec.calls[static_cast<std::size_t>(micro.overflow) - 1];
  const LayerSpec& layer = spec.layers[static_cast<std::size_t>(call.layer)];
  return micro == plain && call.wrap == 0 && layer.outputs > 0 &&
         layer.is_frozen + layer.is_weight_frozen == 0;
}

// From its first value the scale can be halved three times.
bool falls_to_end(const CaseSpec& spec) {
  constexpr std::int64_t kHalvings = 3;
  const auto overflows = [](const MicroSpec& micro) {
    return micro.overflow + micro.lost_overflow != 0;
  };
  return spec.is_dynamic != 0 && std::ranges::count_if(spec.micros, overflows) > kHalvings;
}

std::string floor_problem(const CaseSpec& spec) {
  if (spec.has_floor == 0) return falls_to_end(spec) ? "a loss scale that falls too far" : "";
  const auto is_known = [&](const MicroSpec& micro) {
    if (micro.lost_overflow + micro.clears != 0 || has_abort(micro)) return false;
    return micro.overflow == 0 || overflows_surely(spec, micro);
  };
  const bool is_right = static_cast<Precision>(spec.precision) == Precision::fp16 &&
                        spec.is_dynamic != 0 && spec.scaling == scaling_of_floor(spec) &&
                        spec.owns_scale == 0 && spec.heads == 1 && spec.engines == 1 &&
                        spec.is_tiled == 0 && spec.needs_all == 0 &&
                        std::ranges::all_of(spec.micros, is_known);
  return is_right ? "" : "a loss scale that may fall";
}

}  // namespace

Additions end_additions() {
  static constexpr Addition kEnds[] = {
      {4, reach_floor},     {4, renew_some_engines},   {4, differentiate_aside},
      {4, discard_changes}, {4, clear_in_blocks},      {4, defer_unmanaged},
      {4, save_tags},       {4, wait_for_growth},      {3, visit_abandoned},
      {4, rescale_late},    {4, leave_in_checkpoints}, {4, fail_with_persistent},
      {4, drop_graphs},     {4, mix_backwards}};
  return {kEndStream, 3, kEnds};
}

std::string end_problem(const CaseSpec& spec) {
  if (spec.has_floor < 0 || spec.has_floor > 3) return "a number out of range";
  const auto rescales = [](const MicroSpec& micro) { return micro.rescales != 0; };
  const bool is_told =
      spec.sets_boundary == 3 || spec.owns_scale == 3 || std::ranges::any_of(spec.micros, rescales);
  for (const MicroSpec& micro : spec.micros) {
    if (!is_flag(micro.renews)) return "a number out of range";
    if (micro.renews == 0) continue;
    // A graph of gradients lives as long as they do.
    if (std::ranges::any_of(spec.micros, [](const MicroSpec& it) { return it.creates != 0; }))
      return "an engine whose graphs are kept";
    if (!loads_away(static_cast<Restores>(micro.restores)) || spec.engines > 1)
      return "an engine that nothing is loaded by";
    // What was said once is said to another one.
    if (is_told || micro.registers != 0) return "an engine that was told more";
  }
  return floor_problem(spec);
}

bool ends_refused(const CaseSpec& spec, std::size_t first_micro) {
  if (spec.has_floor == 0) return false;
  const auto overflows = [](const MicroSpec& micro) { return micro.overflow != 0; };
  const auto first = spec.micros.begin() + static_cast<std::ptrdiff_t>(first_micro);
  const bool is_low = spec.has_floor == 1 || std::any_of(spec.micros.begin(), first, overflows);
  return is_low && std::any_of(first, first + spec.accumulation, overflows);
}

void set_floor(const CaseSpec& spec, Fp16Config& fp16) {
  if (spec.has_floor == 0) return;
  const double first = std::ldexp(1.0, static_cast<int>(fp16.initial_scale_power));
  fp16.min_loss_scale = spec.has_floor == 2 ? 0.75 * first : first;
  fp16.loss_scale_window = kNeverGrows;
}

}  // namespace zeroproof::train
