#include "props/train/case_detours.h"

#include <algorithm>

#include "props/train/case_additions.h"
#include "props/train/case_rates.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kDetourStream = 0x6465746f7572ULL;

void draw_detour(CaseSpec& spec, Draws& draws, MicroSpec& micro, int at) {
  const int least = static_cast<int>(Detour::save);
  micro.detour = draws.between(least, static_cast<int>(Detour::peek));
  micro.detour_at = at;
  const bool is_load = static_cast<Detour>(micro.detour) == Detour::load;
  if (is_load && (at > 1 || spec.is_unmanaged != 0)) micro.detour = least;
}

void detour_in_contexts(CaseSpec& spec, Draws& draws) {
  if (draws.one_in(2)) spec.stage = 3;
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) draw_detour(spec, draws, micro, 0);
}

void detour_in_blocks(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (draws.one_in(3)) continue;
    const bool can_wait = spec.stage <= 1 && !is_first(spec, i + 1);
    micro.block = static_cast<int>(can_wait ? Block::no_sync : Block::coalesced);
    draw_detour(spec, draws, micro, 1);
  }
}

void detour_in_forwards(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) draw_detour(spec, draws, micro, 1 + some_call(spec, draws));
}

void look_in_forwards(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = 3;
  spec.skips_frames = 1;
  for (MicroSpec& micro : spec.micros) {
    micro.detour = static_cast<int>(Detour::look);
    micro.detour_at = 1 + some_call(spec, draws);
  }
}

void starve_leaf(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.experts = spec.input_grad = 1;
  spec.persistence = spec.prefetch = spec.reuse = 0;
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.misuse = static_cast<int>(Misuse::unfed_leaf);
}

void move_weights(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.misuse = static_cast<int>(Misuse::moved_weight);
}

void rescale_tiles(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.precision = static_cast<int>(Precision::fp16);
  spec.is_tiled = 1;
  spec.tile_wrap = draws.below(3);
  for (MicroSpec& micro : spec.micros)
    micro = {.repeats = micro.repeats,
             .clears = micro.clears == 1 ? 1 : 0,
             .misuse = draws.one_in(2) ? static_cast<int>(Misuse::late_loss_scale) : 0,
             .rescales = draws.one_in(3) ? 0 : 3};
}

void rescale_before_backwards(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (!is_first(spec, i) && !draws.one_in(3)) spec.micros[i].rescales = 3;
}

// No backward that fails before it leaves something to whoever gathers next.
bool has_context(const CaseSpec& spec) {
  const auto fails = [](const MicroSpec& micro) {
    return has_abort(micro) || is_refused_late(micro) ||
           static_cast<Misuse>(micro.misuse) == Misuse::unfed_leaf;
  };
  return spec.skips_frames == 0 && (spec.stage < 3 || std::ranges::none_of(spec.micros, fails));
}

std::string place_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const auto detour = static_cast<Detour>(micro.detour);
  // Elsewhere a context gives up what the modules around it use.
  const bool is_look = detour == Detour::look;
  const bool is_rounded = static_cast<Precision>(spec.precision) == Precision::autocast;
  if (is_look && (place_of(micro) != DetourPlace::forward || spec.skips_frames == 0 || is_rounded))
    return "a look of no skipped frame";
  switch (place_of(micro)) {
    case DetourPlace::context:
      return has_context(spec) ? "" : "no context for a detour";
    case DetourPlace::block: {
      const auto block = static_cast<Block>(micro.block);
      if (block != Block::coalesced && block != Block::no_sync) return "no block for a detour";
      return {};
    }
    case DetourPlace::forward:
      break;
  }
  if (detour == Detour::load) return "a load in a forward";
  if (spec.is_tiled + micro.skips_on != 0 || (spec.skips_frames != 0 && !is_look))
    return "a forward that is no place for a detour";
  return {};
}

std::string micro_detour_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.detour < 0 || micro.detour > static_cast<int>(Detour::look) || micro.detour_at < 0 ||
      micro.detour_at > static_cast<int>(spec.calls.size()) + 1)
    return "a detour out of range";
  if (micro.detour == 0) return micro.detour_at == 0 ? "" : "a place of no detour";
  const auto detour = static_cast<Detour>(micro.detour);
  const bool clears = detour == Detour::clear || detour == Detour::load;
  if (clears && spec.has_floor != 0) return "an overflow that may be dropped";
  if (clears && static_cast<Misuse>(micro.misuse) == Misuse::late_loss_scale)
    return "a loss scale that may change";
  if (detour == Detour::load && std::ranges::any_of(spec.micros, changes_weights))
    return "a load that undoes a change";
  // It counts the backwards of a window whose gradients are gone.
  if (detour == Detour::load && spec.is_unmanaged != 0) return "samples that nobody counts";
  return place_problem(spec, micro);
}

// There has to be a gradient by then.
std::string rescale_problem(const CaseSpec& spec, const MicroSpec& micro, bool is_first_micro) {
  if (micro.rescales != 3) return {};
  if (static_cast<Precision>(spec.precision) != Precision::fp16) return "a loss scale of nothing";
  if (spec.is_tiled != 0) {
    const LayerSpec& last = spec.layers[static_cast<std::size_t>(spec.calls.back().layer)];
    return last.is_frozen == 0 && last.outputs > 0 ? "" : "tiles that leave no gradient";
  }
  const bool is_kept = !has_abort(micro) && micro.clears + micro.litters + micro.throws == 0 &&
                       micro.detour == 0 && micro.past_engine != 3 && spec.has_floor == 0 &&
                       spec.needs_all == 0;
  return is_kept && !is_first_micro ? "" : "a loss scale that may change";
}

}  // namespace

Additions detour_additions() {
  static constexpr Addition kDetours[] = {{4, detour_in_contexts}, {4, detour_in_blocks},
                                          {4, detour_in_forwards}, {4, look_in_forwards},
                                          {6, starve_leaf},        {6, move_weights},
                                          {5, rescale_tiles},      {5, rescale_before_backwards}};
  return {kDetourStream, 6, kDetours};
}

std::string detour_problem(const CaseSpec& spec) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    for (const std::string& problem : {micro_detour_problem(spec, spec.micros[i]),
                                       rescale_problem(spec, spec.micros[i], is_first(spec, i))})
      if (!problem.empty()) return problem;
  return {};
}

std::string stage3_misuse_problem(const CaseSpec& spec, Misuse misuse) {
  if (spec.stage != 3 || spec.engines > 1 || spec.skips_frames != 0)
    return "weights that are whole anyway";
  if (misuse == Misuse::moved_weight) return {};
  // The window begins anew behind it, which has a loss scale of its own.
  if (static_cast<Precision>(spec.precision) == Precision::fp16 || spec.owns_scale != 0)
    return "a window with two scales";
  // What stays whole, or is gathered ahead, needs no input to be gathered by.
  const bool is_right = spec.experts != 0 && spec.persistence + spec.prefetch + spec.reuse == 0 &&
                        spec.is_tiled == 0 && spec.has_floor == 0;
  return is_right ? "" : "no leaf module that could be refused";
}

}  // namespace zeroproof::train
