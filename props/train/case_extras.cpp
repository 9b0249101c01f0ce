#include "props/train/case_extras.h"

#include <algorithm>
#include <vector>

#include "props/train/draws.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kStream = 0x6578747261ULL;

bool is_first(const CaseSpec& spec, std::size_t micro) {
  return micro % static_cast<std::size_t>(spec.accumulation) == 0;
}

void add_gathers(CaseSpec& spec, Draws& draws) {
  if (static_cast<Precision>(spec.precision) == Precision::autocast) return;
  const auto overflows = [](const MicroSpec& micro) { return micro.overflow != 0; };
  const bool can_change = std::ranges::none_of(spec.micros, overflows);
  spec.checks = spec.stage == 3 ? draws.flag(2) : 0;
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    micro.gathers = draws.below(7);
    const auto gathers = static_cast<Gathers>(micro.gathers);
    const bool changes = gathers == Gathers::first_changes || gathers == Gathers::last_changes;
    if (changes && (!can_change || !is_first(spec, i))) micro.gathers = 1;
    if (gathers == Gathers::unannounced && spec.checks == 0) micro.gathers = 1;
  }
}

void add_restores(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (draws.one_in(2))
      spec.micros[i].restores = is_first(spec, i) ? draws.between(1, 6) : draws.between(4, 6);
}

void add_frames(CaseSpec& spec, Draws& draws) {
  if (spec.skips_frames == 0) return;
  if (static_cast<Precision>(spec.precision) != Precision::autocast &&
      spec.layers.front().outputs > 0)
    spec.reads = draws.flag(2);
  for (MicroSpec& micro : spec.micros) {
    micro.abandons = draws.flag(3);
    micro.guards = draws.flag(3);
  }
}

void add_bounds(CaseSpec& spec, Draws& draws) {
  spec.live = draws.between(1, 16);
  if (spec.prefetch == 0) spec.prefetch = 40;
  spec.persistence_all = draws.between(1, 8);
  if (draws.one_in(2)) spec.reuse = draws.between(1, 12);
}

void add_leaf_modules(CaseSpec& spec, Draws& draws) {
  if (spec.experts != 0) spec.leaf_by = draws.below(4);
  if (spec.stage != 3) return;
  for (LayerSpec& layer : spec.layers)
    if (layer.is_raw == 0) layer.is_linked = 1;
  spec.input_grad = 1;
  spec.granularity = draws.between(1, 5);
  for (MicroSpec& micro : spec.micros) micro.overflow = 0;
}

void return_weight(CaseSpec& spec, int layer) {
  LayerSpec& raw = spec.layers[static_cast<std::size_t>(layer)];
  raw.is_raw = 1;
  raw.has_bias = raw.is_weight_frozen = 0;
  spec.returns = layer + 1;
  std::erase_if(spec.calls, [&](const CallSpec& call) { return call.layer == layer; });
  spec.calls.push_back({.layer = layer});
  const auto calls = static_cast<int>(spec.calls.size());
  for (MicroSpec& micro : spec.micros) {
    micro.overflow = micro.has_bypass = 0;
    micro.skips = std::min(micro.skips, calls);
    micro.aborts = std::min(micro.aborts, calls);
    if (micro.idle_forward == 3) micro.idle_forward = 1;
  }
}

// Weights that are used past their layer.
void add_externals(CaseSpec& spec, Draws& draws) {
  if (spec.reads != 0) spec.registers = draws.flag(2);
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  if (is_autocast) spec.is_unsafe = draws.flag(2);
  if (spec.reads == 0 && !is_autocast)
    return_weight(spec, draws.below(static_cast<int>(spec.layers.size())));
}

void add_blocks(CaseSpec& spec, Draws& draws) {
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    const bool can_wait = spec.stage <= 1 && !is_first(spec, i + 1);
    if (micro.block == 0 && draws.one_in(2)) micro.block = can_wait ? 2 : 1;
    if (micro.block != 0) micro.is_broken = draws.flag(2);
  }
}

// Both forwards of a micro-batch, or one that the engine does not see, in a backward of their own.
void add_backwards(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.outstanding = 3;
}

void add_backwards_past(CaseSpec& spec, Draws& draws) {
  spec.is_manual = 1;
  for (MicroSpec& micro : spec.micros) {
    micro.is_undivided = 0;
    micro.past_engine = draws.flag(2);
  }
}

void set_boundary_once(CaseSpec& spec, Draws&) {
  spec.sets_boundary = 3;
}

}  // namespace

CaseSpec with_extras(const CaseSpec& spec, std::uint64_t seed) {
  struct Extra {
    int one_in;
    void (*add)(CaseSpec& spec, Draws& draws);
  };
  constexpr Extra kExtras[] = {
      {3, add_gathers},        {4, add_restores},     {2, add_frames}, {4, add_bounds},
      {4, add_leaf_modules},   {3, add_externals},    {3, add_blocks}, {5, add_backwards},
      {5, add_backwards_past}, {6, set_boundary_once}};
  Draws draws(seed ^ kStream);
  CaseSpec more = spec;
  if (draws.one_in(2)) return more;
  for (const Extra& extra : kExtras) {
    if (!draws.one_in(extra.one_in)) continue;
    CaseSpec with = more;
    extra.add(with, draws);
    if (why_invalid(with).empty()) more = with;
  }
  return more;
}

}  // namespace zeroproof::train
