#include "props/train/case_extras.h"

#include <algorithm>
#include <span>
#include <vector>

#include "props/train/draws.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kStream = 0x6578747261ULL;
constexpr std::uint64_t kVisitStream = 0x766973697473ULL;

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
    if (draws.one_in(2)) micro.outstanding = static_cast<int>(Outstanding::summed);
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

// --- a stream of their own --------------------------------------------------------------------

void add_looks(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    const bool has_two = micro.outstanding != 0 || (spec.heads == 2 && micro.losses == 0);
    micro.looks = draws.below(has_two ? 3 : 2);
  }
}

void add_kept_graphs(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) micro.keeps = draws.flag(2);
}

void add_weight_terms(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros)
    micro.has_bypass = draws.flag(2) * static_cast<int>(Bypass::weight);
}

// One layer's weight is used in two places of a forward, and stays for a while or not.
void add_late_read(CaseSpec& spec, Draws& draws) {
  if (spec.reads == 0) spec.reads = draws.between(1, static_cast<int>(spec.layers.size()));
  spec.reads_late = 1;
  spec.registers = draws.flag(2);
  if (draws.one_in(2)) spec.prefetch = 0;
  if (draws.one_in(2)) spec.reuse = draws.between(1, 16);
}

// Windows like the first, so that what they cost can be compared.
void add_equal_windows(CaseSpec& spec, Draws& draws) {
  spec.micros.resize(static_cast<std::size_t>(spec.accumulation));
  for (MicroSpec& micro : spec.micros) micro.overflow = 0;  // the loss scale has an end
  const std::vector<MicroSpec> first = spec.micros;
  for (int more = draws.between(2, 3); more > 0; --more)
    spec.micros.insert(spec.micros.end(), first.begin(), first.end());
}

struct Extra {
  int one_in;
  void (*add)(CaseSpec& spec, Draws& draws);
};

CaseSpec with_each(const CaseSpec& spec, std::span<const Extra> extras, Draws& draws) {
  CaseSpec more = spec;
  for (const Extra& extra : extras) {
    if (!draws.one_in(extra.one_in)) continue;
    CaseSpec with = more;
    extra.add(with, draws);
    if (why_invalid(with).empty()) more = with;
  }
  return more;
}

// What came later leaves two of three cases as they were.
CaseSpec with_visits(const CaseSpec& spec, std::uint64_t seed) {
  constexpr Extra kVisits[] = {{3, add_looks},
                               {3, add_kept_graphs},
                               {4, add_weight_terms},
                               {4, add_late_read},
                               {4, add_equal_windows}};
  Draws draws(seed ^ kVisitStream);
  return draws.one_in(3) ? with_each(spec, kVisits, draws) : spec;
}

}  // namespace

CaseSpec with_extras(const CaseSpec& spec, std::uint64_t seed) {
  constexpr Extra kExtras[] = {
      {3, add_gathers},        {4, add_restores},     {2, add_frames}, {4, add_bounds},
      {4, add_leaf_modules},   {3, add_externals},    {3, add_blocks}, {5, add_backwards},
      {5, add_backwards_past}, {6, set_boundary_once}};
  Draws draws(seed ^ kStream);
  const CaseSpec more = draws.one_in(2) ? spec : with_each(spec, kExtras, draws);
  return with_visits(more, seed);
}

}  // namespace zeroproof::train
