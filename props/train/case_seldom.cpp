#include "props/train/case_seldom.h"

#include <algorithm>

#include "props/train/case_additions.h"
#include "props/train/case_memory.h"
#include "props/train/case_rates.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kSeldomStream = 0x73656c646f6dULL;
constexpr int kOptimizerMisfit = 6;  // of checkpoint_damage.h

void overflow_in_most_windows(CaseSpec& spec, Draws& draws) {
  const int windows = draws.between(3, 5);
  move_loss_scale(spec, draws, static_cast<std::size_t>(windows));
  for (int window = 0; window + 1 < windows; ++window)
    if (!draws.one_in(4)) overflow_in(spec, draws, static_cast<std::size_t>(window));
}

void say_what_it_is(CaseSpec& spec, Draws& draws) {
  overflow_in_most_windows(spec, draws);
  spec.owns_scale = 3;
}

void sync_second(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = draws.below(2);
  if (spec.stage == 0) spec.is_manual = 0;
  spec.needs_all = 0;
  spec.has_overlap = spec.stage == 1 ? draws.flag(2) : 0;
  spec.is_unmanaged = spec.has_overlap == 0 ? draws.flag(3) : 0;
  if (draws.one_in(2)) {
    spec.accumulation = 1;
    spec.sets_boundary = 0;
  }
  for (MicroSpec& micro : spec.micros) {
    if (!draws.one_in(8)) micro = {.repeats = 1, .block = static_cast<int>(Block::no_sync_first)};
  }
}

void save_as_another(CaseSpec& spec, Draws& draws) {
  MicroSpec& micro =
      spec.micros[static_cast<std::size_t>(draws.below(static_cast<int>(spec.micros.size())))];
  micro.restores = static_cast<int>(Restores::misfit);
  micro.damages = kOptimizerMisfit;
}

void receive_guests(CaseSpec& spec, Draws& draws) {
  spec.engines = 1;
  spec.takes_turns = 0;
  for (MicroSpec& micro : spec.micros) micro.guests = draws.flag(2);
}

// Plain windows, enough for an order that is known.
void take_order(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = 3;
  spec.skips_frames = spec.granularity = spec.needs_all = 0;
  const auto windows = static_cast<std::size_t>(draws.between(3, 4));
  spec.micros.assign(windows * static_cast<std::size_t>(spec.accumulation), MicroSpec());
}

void register_always(CaseSpec& spec, Draws& draws) {
  take_order(spec, draws);
  const int layer = some_layer(spec, draws);
  for (MicroSpec& micro : spec.micros) micro.registers = layer;
}

void leave_order(CaseSpec& spec, Draws& draws) {
  take_order(spec, draws);
  spec.persistence = spec.reuse = 0;
  spec.prefetch = draws.between(1, 12);
  MicroSpec& last = spec.micros[spec.micros.size() - static_cast<std::size_t>(spec.accumulation)];
  last.skips = some_call(spec, draws);
  spec.ranks = std::max(spec.ranks, 2);
}

void gather_in_little_room(CaseSpec& spec, Draws& draws) {
  take_order(spec, draws);
  take_two_heads(spec);
  spec.persistence = spec.reuse = 0;
  spec.prefetch = draws.between(2, 40);
  spec.live = draws.between(2, 12);
  spec.ranks = std::max(spec.ranks, 2);
}

void gather_two_dtypes(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = 3;
  spec.skips_frames = 0;
  spec.precision = static_cast<int>(Precision::autocast);
  make_raw(layer_of_some(spec, draws));
  for (MicroSpec& micro : spec.micros)
    micro = {.gathers = static_cast<int>(Gathers::looks_rounded),
             .shortage = static_cast<int>(Shortage::gathers),
             .shortage_at = draws.between(1, 5)};
}

// The user's hook throws in what a checkpoint runs again.
void fail_in_checkpoint(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.input_grad = 1;
  spec.stage = draws.between(1, 2);
  spec.is_manual = 1;
  spec.is_scattered = draws.flag(2);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro = {.aborts = some_call(spec, draws), .is_uncleared = draws.flag(2)};
    micro.wrapped = draws.between(1, 2);
  }
}

// What a leaf module has below it is used by somebody else, too.
void read_below_leaf(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = 3;
  spec.engines = 1;
  spec.input_grad = 1;
  spec.skips_frames = spec.is_tiled = spec.tile_wrap = spec.persistence = 0;
  spec.granularity = draws.between(2, 9);
  for (LayerSpec& layer : spec.layers) layer.is_linked = 1;
  spec.reads = some_layer(spec, draws);
  LayerSpec& read = spec.layers[static_cast<std::size_t>(spec.reads) - 1];
  read.is_raw = read.has_twin = read.shape = read.is_weight_frozen = 0;
  read.is_frozen = 1;
}

// A graph that is differentiated twice goes through checkpoints.
void retain_around_checkpoint(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = 3;
  spec.ranks = std::max(spec.ranks, 2);
  spec.input_grad = 1;
  spec.persistence = spec.prefetch = spec.reuse = spec.skips_frames = spec.granularity = 0;
  spec.is_tiled = spec.tile_wrap = spec.is_dynamic = spec.scaling = spec.first_ranks = 0;
  spec.first_stage = -1;
  spec.live = CaseSpec::kManyElements;
  spec.layers.resize(2);
  spec.calls = {{.layer = 0}, {.layer = 1, .wrap = static_cast<int>(Wrap::reentrant)}};
  for (LayerSpec& layer : spec.layers) {
    layer.is_linked = 1;
    layer.is_frozen = layer.is_weight_frozen = 0;
    layer.outputs = std::max(layer.outputs, 1);
  }
  for (MicroSpec& micro : spec.micros) micro = {.peeks = draws.flag(3), .again = 1};
}

// Blocks of a frozen layer and a trained one, each in a checkpoint.
void recompute_frozen(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = 3;
  spec.persistence = spec.prefetch = spec.reuse = spec.skips_frames = spec.granularity = 0;
  spec.is_tiled = spec.tile_wrap = spec.input_grad = 0;
  spec.layers.resize(4);
  spec.calls.clear();
  for (int i = 0; i < 4; ++i) {
    LayerSpec& layer = spec.layers[static_cast<std::size_t>(i)];
    layer.is_frozen = 1 - i % 2;
    layer.is_weight_frozen = 0;
    layer.is_linked = 1;
    layer.outputs = std::max(layer.outputs, 1);
    spec.calls.push_back(
        {.layer = i, .wrap = static_cast<int>(Wrap::non_reentrant), .is_joined = i % 2});
  }
  for (MicroSpec& micro : spec.micros) micro = {.repeats = draws.flag(3)};
}

// Sums of ranks that need more bits than a gradient of the model has.
void widen_ranks(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.precision = static_cast<int>(Precision::bf16);
  spec.is_wide = spec.accumulates_float32 = spec.is_wire_float32 = 1;
  spec.stage = 3;
  spec.ranks = 4;
  spec.sequence = spec.tensor = spec.accumulation = 1;
  spec.is_dynamic = spec.scaling = spec.owns_scale = spec.masters = 0;
  spec.first_ranks = spec.skips_frames = spec.granularity = spec.is_manual = 0;
  spec.first_stage = -1;
  spec.layers.resize(1);
  spec.layers.front().has_twin = spec.layers.front().shape = 0;
  spec.layers.front().is_frozen = spec.layers.front().is_weight_frozen = 0;
  spec.calls.assign(3, {});
  spec.micros.resize(2);
  for (MicroSpec& micro : spec.micros) micro = {.peeks = draws.flag(3)};
}

// As well, of one backward: each contribution is reduced before the next one comes.
void widen_flushes(CaseSpec& spec, Draws& draws) {
  LayerSpec layer{.inputs = draws.between(1, 3), .outputs = draws.between(1, 3)};
  layer.is_linked = draws.flag(2);
  const int ranks = draws.of({2, 2, 3});
  spec = {.ranks = ranks, .stage = 2, .precision = static_cast<int>(Precision::bf16)};
  spec.input_grad = spec.bucket = 1;
  spec.is_wide = spec.accumulates_float32 = spec.is_wire_float32 = 1;
  spec.is_manual = draws.flag(3);
  spec.has_overlap = draws.flag(2);
  spec.is_offloaded = draws.flag(3);
  spec.layers.assign(2, layer);
  for (int i = ranks == 2 ? 10 : 6; i > 0; --i)
    spec.calls.push_back({.layer = i % 2, .wrap = static_cast<int>(Wrap::reentrant)});
  spec.micros.assign(2, {.peeks = draws.flag(3)});
}

// The linear function of a weight that is whole in a context alone, and frozen.
void multiply_frozen(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = 3;
  spec.input_grad = 1;
  spec.persistence = spec.skips_frames = spec.is_tiled = spec.tile_wrap = 0;
  spec.layers.front().is_frozen = 1;
  spec.layers.front().is_weight_frozen = 0;
  for (MicroSpec& micro : spec.micros)
    if (!draws.one_in(3)) micro = {.has_bypass = static_cast<int>(Bypass::weight)};
}

}  // namespace

Additions seldom_additions() {
  static constexpr Addition kSeldom[] = {{5, overflow_in_most_windows},
                                         {5, say_what_it_is},
                                         {5, sync_second},
                                         {5, save_as_another},
                                         {5, receive_guests},
                                         {5, register_always},
                                         {5, leave_order},
                                         {5, gather_in_little_room},
                                         {5, gather_two_dtypes},
                                         {5, fail_in_checkpoint},
                                         {5, read_below_leaf},
                                         {5, multiply_frozen},
                                         {5, widen_ranks},
                                         {5, recompute_frozen},
                                         {5, retain_around_checkpoint},
                                         {8, widen_flushes}};
  return {kSeldomStream, 5, kSeldom};
}

}  // namespace zeroproof::train
