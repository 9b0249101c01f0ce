#include "props/train/case_rates.h"

#include <algorithm>

#include "props/train/case_additions.h"

namespace zeroproof::train {

void set_interrupt(CaseSpec& spec, Draws& draws, Interrupt interrupt) {
  for (MicroSpec& micro : spec.micros) {
    micro.interrupt = micro.interrupt_at = 0;
    if (draws.one_in(2)) continue;
    micro.interrupt = static_cast<int>(interrupt);
    micro.interrupt_at = some_call(spec, draws);
  }
}

// Every module by itself: no checkpoint, nothing that is read past its layer.
void make_plain(CaseSpec& spec) {
  spec.engines = spec.heads = 1;
  spec.is_tiled = spec.tile_wrap = spec.container = spec.experts = spec.leaf_by = 0;
  spec.reads = spec.reads_late = spec.registers = spec.holds = spec.returns = 0;
  for (CallSpec& call : spec.calls) call.wrap = 0;
}

void take_two_heads(CaseSpec& spec) {
  spec.heads = 2;
  spec.engines = 1;
  spec.is_tiled = spec.tile_wrap = 0;
  if (spec.calls.size() < 2) spec.calls.push_back(spec.calls.front());
  for (std::size_t i = spec.calls.size() - 2; i < spec.calls.size(); ++i) spec.calls[i].wrap = 0;
}

namespace {

constexpr std::uint64_t kRateStream = 0x7261746573ULL;

void transform(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.precision = static_cast<int>(Precision::float32);
  for (MicroSpec& micro : spec.micros) {
    micro.overflow = micro.lost_overflow = 0;
    if (draws.one_in(2)) micro.idle_forward = 3;
  }
}

void tile_plain_stage(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.stage = spec.is_manual = spec.is_offloaded = spec.offloads_params = 0;
  spec.is_tiled = 1;
  spec.tile_wrap = draws.below(3);
  for (MicroSpec& micro : spec.micros)
    micro = {.repeats = micro.repeats, .gathers = micro.gathers, .peeks = micro.peeks};
}

void renew_engines(CaseSpec& spec, Draws& draws) {
  spec.engines = 1;
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    micro.creates = micro.registers = micro.rescales = 0;
    if (!is_first(spec, i) || draws.one_in(3)) continue;
    load_away(micro, draws);
    micro.renews = 1;
  }
}

void step_behind_lost_loss(CaseSpec& spec, Draws& draws) {
  spec.engines = 1;
  spec.is_tiled = spec.tile_wrap = spec.skips_frames = 0;
  set_interrupt(spec, draws, Interrupt::step);
  for (MicroSpec& micro : spec.micros) {
    micro.aborts = 0;
    micro.aborts_on_loss = 1;
    micro.is_uncleared = draws.flag(2);
  }
}

// A good step between two overflows, or none.
void overflow_often(CaseSpec& spec, Draws& draws) {
  move_loss_scale(spec, draws, 4);
  for (const std::size_t which : {0, draws.between(1, 2)}) overflow_in(spec, draws, which);
}

void step_in_blocks(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.misuse = static_cast<int>(Misuse::step_in_block);
}

// A nested backward adds to what has come, where gradients stay as they are.
void scatter_nested(CaseSpec& spec, Draws& draws) {
  spec.is_scattered = 1;
  spec.stage = draws.between(1, 2);
  spec.is_manual = spec.is_tiled = spec.tile_wrap = 0;
  spec.input_grad = 1;
  spec.calls.insert(spec.calls.begin(), spec.calls.front());
  spec.calls.front().wrap = static_cast<int>(Wrap::reentrant);
  if (draws.one_in(2)) spec.bucket = draws.between(1, 4);
  for (MicroSpec& micro : spec.micros) micro.creates = draws.flag(2);
}

void link_all(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.input_grad = 1;
  spec.prefetch = draws.of({0, 4, 40});
  for (LayerSpec& layer : spec.layers) layer.is_linked = 1 - layer.is_raw;
}

void keep_first_losses(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.ranks = std::max(spec.ranks, 2);
  spec.skips_frames = spec.granularity = 0;
  take_two_heads(spec);
  for (MicroSpec& micro : spec.micros) {
    micro.keeps = 2;
    micro.losses = draws.one_in(3) ? 0 : 1;
  }
}

// Room for all of it, and not for what earlier graphs have had.
void keep_bounded(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.ranks = std::max(spec.ranks, 2);
  spec.skips_frames = spec.granularity = spec.reuse = spec.prefetch = 0;
  make_plain(spec);
  take_two_heads(spec);
  int elements = 1;
  for (const LayerSpec& layer : spec.layers) elements += layer.elements();
  spec.live = draws.between(2, 3) * elements;
  if (spec.accumulation < 4) {
    spec.accumulation = 4;
    spec.micros.resize(8, spec.micros.back());
  }
  for (MicroSpec& micro : spec.micros) micro = {.peeks = micro.peeks, .keeps = 1};
}

}  // namespace

Additions rate_additions() {
  static constexpr Addition kRates[] = {{8, transform},         {8, tile_plain_stage},
                                        {5, renew_engines},     {8, step_behind_lost_loss},
                                        {8, overflow_often},    {6, step_in_blocks},
                                        {6, scatter_nested},    {6, link_all},
                                        {8, keep_first_losses}, {8, keep_bounded}};
  return {kRateStream, 4, kRates};
}

}  // namespace zeroproof::train
