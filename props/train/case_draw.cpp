#include "props/train/case_draw.h"

#include <algorithm>
#include <vector>

#include "props/train/case_additions.h"
#include "props/train/case_asides.h"
#include "props/train/case_detours.h"
#include "props/train/case_ends.h"
#include "props/train/case_extras.h"
#include "props/train/case_habits.h"
#include "props/train/case_inputs.h"
#include "props/train/case_limits.h"
#include "props/train/case_manners.h"
#include "props/train/case_memory.h"
#include "props/train/case_mixes.h"
#include "props/train/case_modes.h"
#include "props/train/case_orders.h"
#include "props/train/case_rates.h"
#include "props/train/case_root.h"
#include "props/train/case_saves.h"
#include "props/train/case_seldom.h"
#include "props/train/case_storage.h"
#include "props/train/case_turns.h"
#include "props/train/case_worlds.h"
#include "props/train/draws.h"

namespace zeroproof::train {
namespace {

// What a case may have at all.
struct Swarm {
  bool has_frozen, has_unused, has_shared, has_empty, has_biases, has_checkpoints, has_two_heads,
      has_outstanding, has_repeats, has_blocks, has_idle, has_aborts, has_skips, has_overflow,
      has_bypass, has_links, has_undivided, has_low_precision, has_two_engines, has_options,
      has_experts, has_raw, has_gathers, has_reads, has_equal_windows, has_skipped_frames;
};

// `rarer`: by so much is everything than in most cases.
Swarm draw_swarm(Draws& draws, int rarer) {
  const auto some = [&](int count) { return draws.one_in(count * rarer); };
  return {.has_frozen = some(4),
          .has_unused = some(4),
          .has_shared = some(3),
          .has_empty = some(8),
          .has_biases = some(3),
          .has_checkpoints = some(3),
          .has_two_heads = some(5),
          .has_outstanding = some(5),
          .has_repeats = some(4),
          .has_blocks = some(4),
          .has_idle = some(6),
          .has_aborts = some(6),
          .has_skips = some(4),
          .has_overflow = some(3),
          .has_bypass = some(8),
          .has_links = some(2),
          .has_undivided = some(8),
          .has_low_precision = some(2),
          .has_two_engines = some(7),
          .has_options = some(2),
          .has_experts = some(6),
          .has_raw = some(4),
          .has_gathers = some(8),
          .has_reads = some(6),
          .has_equal_windows = some(4),
          .has_skipped_frames = some(12)};
}

class CaseDraw {
 public:
  CaseDraw(Draws& draws, int rarer) : draws_(draws), swarm_(draw_swarm(draws, rarer)) {}

  CaseSpec draw() {
    draw_world();
    draw_model();
    draw_program();
    draw_config();
    draw_structure();
    return spec_;
  }

 private:
  void draw_world() {
    spec_.ranks = draws_.of({1, 1, 2, 2, 2, 2, 3, 4});
    spec_.stage = draws_.of({0, 1, 1, 2, 2, 2, 3, 3, 3});
    if (swarm_.has_low_precision) spec_.precision = draws_.of({1, 2, 2, 3});
    if (swarm_.has_two_engines) spec_.engines = 2;
    spec_.is_manual = draws_.flag(3);
    spec_.preempts = draws_.flag(2);
    spec_.input_grad = draws_.flag(2);
  }

  void draw_model() {
    const int layers = draws_.between(1, 4);
    for (int i = 0; i < layers; ++i) {
      LayerSpec layer;
      layer.inputs = draws_.between(1, 3);
      layer.outputs = swarm_.has_empty && draws_.one_in(3) ? 0 : draws_.between(1, 3);
      if (swarm_.has_biases) layer.has_bias = draws_.flag(2);
      if (swarm_.has_links) layer.is_linked = draws_.flag(2);
      if (swarm_.has_frozen) layer.is_frozen = draws_.flag(3);
      spec_.layers.push_back(layer);
    }
    for (int i = 0; i < layers; ++i)
      if (!swarm_.has_unused || !draws_.one_in(3)) add_call(i);
    if (swarm_.has_shared) add_call(draws_.below(layers));
    if (spec_.calls.empty()) add_call(0);
    if (swarm_.has_two_heads) spec_.heads = 2;
    spec_.is_tiled = draws_.flag(8);
    if (draws_.one_in(8)) spec_.container = draws_.between(1, 2);
  }

  void add_call(int layer) {
    CallSpec call;
    call.layer = layer;
    if (swarm_.has_checkpoints) call.wrap = draws_.below(3);
    call.is_joined = draws_.flag(2);
    spec_.calls.push_back(call);
  }

  void draw_program() {
    spec_.accumulation = draws_.of({1, 1, 1, 2, 2, 4});
    spec_.is_unmanaged = spec_.accumulation > 1 ? draws_.flag(4) : 0;
    const int windows = draws_.of({1, 2, 2, 3});
    for (int i = 0; i < windows * spec_.accumulation; ++i) spec_.micros.push_back(draw_micro());
  }

  MicroSpec draw_micro() {
    const auto calls = static_cast<int>(spec_.calls.size());
    MicroSpec micro;
    micro.losses = draws_.below(4);
    if (swarm_.has_outstanding && draws_.one_in(2)) micro.outstanding = draws_.between(1, 2);
    if (swarm_.has_repeats) micro.repeats = draws_.flag(2);
    if (swarm_.has_blocks && draws_.one_in(2)) micro.block = draws_.between(1, 3);
    if (swarm_.has_idle && draws_.one_in(2)) micro.idle_forward = draws_.between(1, 3);
    if (swarm_.has_aborts && draws_.one_in(3)) micro.aborts = draws_.between(1, calls);
    if (swarm_.has_skips && draws_.one_in(3)) micro.skips = draws_.between(1, calls);
    if (swarm_.has_undivided) micro.is_undivided = draws_.flag(2);
    if (swarm_.has_bypass) micro.has_bypass = draws_.flag(2);
    if (swarm_.has_overflow && draws_.one_in(3)) {
      micro.overflow = draws_.between(1, calls);
      micro.overflow_rank = draws_.below(spec_.ranks);
    }
    return micro;
  }

  // Around what fills a bucket exactly, and what does not fit.
  int draw_bucket() {
    const LayerSpec& layer =
        spec_.layers[static_cast<std::size_t>(draws_.below(static_cast<int>(spec_.layers.size())))];
    const int elements = std::max(1, layer.inputs * layer.outputs);
    switch (draws_.below(6)) {
      case 0:
        return elements;
      case 1:
        return std::max(1, elements - 1);
      case 2:
        return draws_.one_in(6) ? 0 : draws_.between(2, 8);
      case 3:
        return 2 * elements;
      default:
        return CaseSpec::kManyElements;
    }
  }

  void draw_config() {
    spec_.bucket = draw_bucket();
    spec_.has_overlap = draws_.flag(2);
    spec_.is_offloaded = draws_.flag(5);
    spec_.clip = draws_.of({0, 1, 2});
    spec_.is_dynamic = draws_.flag(2);
    spec_.persistence = draws_.of({0, 0, 2, 4});
    spec_.prefetch = draws_.of({0, 4, 40});
    if (!swarm_.has_options) return;
    spec_.is_scattered = draws_.flag(4);
    spec_.reduces_whole = draws_.flag(3);
    spec_.reduces_to_owners = draws_.flag(3);
    spec_.is_wire_float32 = draws_.flag(4);
    spec_.accumulates_float32 = draws_.flag(3);
    spec_.predivides = draws_.flag(5);
    spec_.prescales = draws_.flag(5);
    spec_.is_sum = draws_.flag(5);
    spec_.is_sgd = draws_.flag(5);
    spec_.reuse = draws_.of({0, CaseSpec::kManyElements});
    spec_.sub_group = draws_.of({CaseSpec::kManyElements, 4, 1});
    spec_.plain_linear = draws_.flag(3);
  }

  // What goes past the calls of layers.
  void draw_structure() {
    if (swarm_.has_skipped_frames) spec_.skips_frames = 1;
    if (swarm_.has_experts) {
      spec_.experts = 1;
      spec_.leaf_by = draws_.below(4);
    }
    if (swarm_.has_reads) spec_.reads = draws_.between(1, static_cast<int>(spec_.layers.size()));
    for (LayerSpec& layer : spec_.layers) {
      if (swarm_.has_raw) layer.is_raw = draws_.flag(2);
      if (swarm_.has_frozen && draws_.one_in(2)) layer.has_bias = layer.is_weight_frozen = 1;
    }
    for (MicroSpec& micro : spec_.micros) {
      if (swarm_.has_gathers) micro.gathers = draws_.flag(2);
      if (swarm_.has_experts) micro.rehooks = draws_.flag(4);
      if (micro.aborts != 0) micro.aborts_managed = draws_.flag(2);
      if (micro.aborts != 0) micro.is_uncleared = draws_.flag(2);
    }
    draw_interruptions();
    if (!swarm_.has_equal_windows) return;
    const auto size = static_cast<std::size_t>(spec_.accumulation);
    for (std::size_t i = size; i < spec_.micros.size(); ++i)
      spec_.micros[i] = spec_.micros[i - size];
  }

  // What stops a program for a while, and it goes on.
  void draw_interruptions() {
    const bool has_throws = draws_.one_in(6);
    const bool has_broken = draws_.one_in(2);
    const bool has_restores = draws_.one_in(6);
    if (spec_.is_tiled != 0) spec_.tile_wrap = draws_.below(3);
    const auto layers = static_cast<int>(spec_.layers.size());
    for (MicroSpec& micro : spec_.micros) {
      if (has_throws && draws_.one_in(2)) micro.throws = draws_.between(1, layers);
      if (has_broken && micro.block != 0) micro.is_broken = draws_.flag(2);
      if (has_restores) micro.restores = draws_.flag(2);
    }
    draw_calls_besides();
    draw_options();
  }

  // What the user calls besides forward, backward and step.
  void draw_calls_besides() {
    const bool has_clears = draws_.one_in(6);
    const bool has_peeks = draws_.one_in(8);
    const bool has_misuse = draws_.one_in(5);
    for (MicroSpec& micro : spec_.micros) {
      if (has_clears) micro.clears = draws_.flag(2);
      if (has_peeks) micro.peeks = draws_.flag(2);
      if (has_misuse && draws_.one_in(2)) micro.misuse = draws_.between(1, 8);
    }
    if (draws_.one_in(8)) spec_.sets_boundary = draws_.between(1, 2);
    if (draws_.one_in(6)) spec_.owns_scale = draws_.between(1, 2);
    spec_.has_ranks_apart = draws_.flag(3);
  }

  void draw_options() {
    if (draws_.one_in(4)) spec_.groups = draws_.between(2, 3);
    if (draws_.one_in(3)) spec_.rule = draws_.between(1, 2);
    spec_.scaling = draws_.below(4);
    spec_.is_unchecked = draws_.flag(6);
    if (draws_.one_in(3)) spec_.gather_bucket = draws_.of({2, 4, 8});
  }

  Draws& draws_;
  Swarm swarm_;
  CaseSpec spec_;
};

// What an engine of the case does not refuse becomes what all refuse.
void settle_misuse(const CaseSpec& spec, MicroSpec& micro) {
  const auto misuse = static_cast<Misuse>(micro.misuse);
  const bool is_scaled = spec.precision == 2 && spec.is_manual != 0 && spec.engines == 1;
  const bool has_no_block = spec.is_unmanaged != 0;
  if ((misuse == Misuse::step_in_block && has_no_block) ||
      (misuse == Misuse::late_loss_scale && spec.precision != 2) ||
      (misuse == Misuse::set_boundary && spec.is_unmanaged == 0) ||
      (misuse == Misuse::unscaled_manual && (!is_scaled || spec.is_tiled + spec.skips_frames != 0)))
    micro.misuse = static_cast<int>(Misuse::loss_of_vector);
}

// What does not fit together gives way, the rarer feature first; whatever is left is redrawn.
void settle(CaseSpec& spec) {
  if (spec.stage == 0) spec.is_manual = spec.is_offloaded = 0;
  if (spec.heads == 2 || spec.engines == 2) spec.is_tiled = 0;
  if (spec.engines == 2) spec.heads = 1;
  const std::size_t plain = spec.heads == 2 ? 2 : spec.is_tiled;
  for (std::size_t i = 0; i < std::min(plain, spec.calls.size()); ++i)
    spec.calls[spec.calls.size() - 1 - i].wrap = 0;
  const bool is_plain = spec.precision == 0 && spec.engines == 1 && spec.heads == 1 &&
                        spec.container == 0 && !has_checkpoints(spec);
  if (spec.is_tiled == 0) spec.tile_wrap = 0;
  if (spec.is_unmanaged != 0) spec.sets_boundary = 0;
  if (spec.precision != 2) spec.owns_scale = 0;
  if (spec.precision != 2 || spec.is_dynamic == 0) spec.scaling = 0;
  if (spec.precision != 1) spec.is_unchecked = 0;
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (i % static_cast<std::size_t>(spec.accumulation) != 0) micro.restores = 0;
    const bool is_boundary = (i + 1) % static_cast<std::size_t>(spec.accumulation) == 0;
    if ((micro.block == 1 || micro.block == 3) && (spec.stage == 0 || spec.is_unmanaged != 0))
      micro.block = 0;
    if (micro.block == 2 && (spec.stage > 1 || spec.is_unmanaged != 0 || is_boundary))
      micro.block = 0;
    if (spec.is_manual != 0 || spec.engines == 2 || spec.is_tiled != 0) micro.is_undivided = 0;
    if (spec.engines == 2 || spec.is_tiled != 0) micro.has_bypass = 0;
    if (spec.engines == 2 && spec.precision == 2) micro.outstanding = 0;
    if (spec.is_tiled != 0) micro.idle_forward = micro.throws = 0;
    if (micro.block == 0) micro.is_broken = 0;
    if (spec.is_tiled != 0 && micro.block == 3) micro.block = 1;
    if (micro.idle_forward >= 3 && !is_plain) micro.idle_forward = 1;
    const bool checks =
        spec.precision == 2 || (spec.precision == 1 && (spec.stage == 1 || spec.stage == 2));
    if (!checks || spec.is_unchecked != 0) micro.overflow = 0;
    settle_misuse(spec, micro);
  }
}

// Everything else gives way: it is rare.
void settle_skipped_frames(CaseSpec& spec) {
  if (spec.skips_frames == 0) return;
  spec.stage = 3;
  spec.engines = spec.heads = 1;
  spec.is_tiled = spec.tile_wrap = spec.experts = spec.leaf_by = spec.reads = spec.container = 0;
  for (CallSpec& call : spec.calls) call.wrap = 0;
  for (MicroSpec& micro : spec.micros) {
    micro.aborts = micro.has_bypass = micro.gathers = micro.throws = 0;
    if (micro.idle_forward != 1) micro.idle_forward = 0;  // without gradients it claims nothing
    if (micro.block == 2) micro.block = 0;
  }
}

void settle_structure(CaseSpec& spec) {
  for (LayerSpec& layer : spec.layers) {
    if (layer.is_raw != 0) layer.has_bias = 0;
    if (layer.has_bias == 0 || layer.is_frozen != 0) layer.is_weight_frozen = 0;
  }
  const bool is_simple = spec.engines == 1 && spec.is_tiled == 0;
  if (!is_simple) spec.experts = spec.leaf_by = 0;
  if (spec.experts != 0) spec.input_grad = 1;
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  const bool is_empty =
      spec.reads != 0 && spec.layers[static_cast<std::size_t>(spec.reads) - 1].outputs == 0;
  if (!is_simple || is_autocast || is_empty) spec.reads = 0;
  for (MicroSpec& micro : spec.micros)
    if (is_autocast) micro.gathers = 0;
  for (MicroSpec& micro : spec.micros) {
    if (micro.idle_forward >= 3 && (spec.experts != 0 || spec.reads != 0)) micro.idle_forward = 1;
    if (spec.heads == 1) micro.losses = 0;
    if (spec.experts == 0 || spec.stage != 3) micro.rehooks = 0;
  }
}

constexpr std::uint64_t kFocusStream = 0x666f637573ULL;
constexpr int kRarer = 4;  // what a plain case has
constexpr int kOneInMixed = 4;

// Of every subject, in the order in which they are drawn.
constexpr Additions (*kSubjects[])() = {
    extra_additions,   visit_additions,    departure_additions, limit_additions, aside_additions,
    storage_additions, end_additions,      mode_additions,      save_additions,  input_additions,
    rate_additions,    turn_additions,     manner_additions,    order_additions, detour_additions,
    world_additions,   shortage_additions, seldom_additions,    habit_additions, root_additions};

CaseSpec draw_swarm_case(Draws& draws, int rarer) {
  CaseSpec spec;
  do {
    spec = CaseDraw(draws, rarer).draw();
    settle_skipped_frames(spec);
    settle(spec);
    settle_structure(spec);
  } while (!why_invalid(spec).empty());
  return spec;
}

const std::vector<Addition>& known_additions() {
  static const std::vector<Addition> kAll = all_additions();
  return kAll;
}

// Few things, and little around them that would keep them from meeting.
CaseSpec draw_focused_case(Draws& draws) {
  const CaseSpec plain = draw_swarm_case(draws, kRarer);
  return with_few(plain, known_additions(), draws.of({1, 2, 2, 2, 3, 3}), draws);
}

}  // namespace

std::vector<Addition> all_additions() {
  std::vector<Addition> all;
  for (const auto& subject : kSubjects)
    all.insert(all.end(), subject().all.begin(), subject().all.end());
  return all;
}

CaseSpec draw_case(std::uint64_t seed) {
  Draws focus(seed ^ kFocusStream);
  if (focus.one_in(3)) return draw_focused_case(focus);
  if (focus.one_in(kOneInMixed))
    return with_few(draw_mixed_case(focus), known_additions(), focus.below(3), focus);
  Draws draws(seed);
  CaseSpec spec = draw_swarm_case(draws, 1);
  for (const auto& subject : kSubjects) spec = with_drawn(spec, subject(), seed);
  return spec;
}

}  // namespace zeroproof::train
