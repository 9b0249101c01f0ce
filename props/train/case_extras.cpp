#include "props/train/case_extras.h"

#include <algorithm>
#include <vector>

#include "props/train/case_additions.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kStream = 0x6578747261ULL;
constexpr std::uint64_t kVisitStream = 0x766973697473ULL;
constexpr std::uint64_t kDepartureStream = 0x64657061727473ULL;

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
  spec.packs = draws.flag(2);
  for (MicroSpec& micro : spec.micros) micro.overflow = 0;
}

void return_weight(CaseSpec& spec, int layer) {
  make_raw(spec.layers[static_cast<std::size_t>(layer)]);
  spec.returns = layer + 1;
  std::erase_if(spec.calls, [&](const CallSpec& call) { return call.layer == layer; });
  spec.calls.push_back({.layer = layer});
  const auto calls = static_cast<int>(spec.calls.size());
  for (MicroSpec& micro : spec.micros) {
    micro.overflow = micro.has_bypass = 0;
    micro.skips = std::min(micro.skips, calls);
    micro.aborts = std::min(micro.aborts, calls);
    if (micro.idle_forward >= 3) micro.idle_forward = 1;
  }
}

// Weights that are used past their layer.
void add_externals(CaseSpec& spec, Draws& draws) {
  if (spec.reads != 0) spec.registers = draws.flag(2);
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  if (is_autocast) spec.is_unsafe = draws.below(4);
  if (spec.is_unsafe == 3) spec.packs = 1;
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
  if (spec.reads == 0) spec.reads = some_layer(spec, draws);
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

// --- and another one: what leaves an order of modules that is known ----------------------------

// Enough equal windows for an order to be complete, whatever there is at the beginning of the last.
MicroSpec& after_known_order(CaseSpec& spec, Draws& draws) {
  MicroSpec& first = spec.micros.front();
  first.idle_forward = first.aborts = first.throws = first.throws_no_grad = 0;
  first.restores = first.misuse = first.clears = first.abandons = 0;
  add_equal_windows(spec, draws);
  return spec.micros[spec.micros.size() - static_cast<std::size_t>(spec.accumulation)];
}

void add_failed_forwards(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) micro.throws = some_layer(spec, draws);
    micro.throws_no_grad = micro.throws != 0 ? draws.flag(2) : 0;
  }
}

void add_late_forward(CaseSpec& spec, Draws& draws) {
  if (draws.one_in(2)) spec.prefetch = draws.between(1, 40);
  if (draws.one_in(2)) spec.live = draws.between(1, 8);
  MicroSpec& last = after_known_order(spec, draws);
  last.idle_forward = draws.between(0, 3);
  if (last.idle_forward != 0) return;
  last.throws = some_layer(spec, draws);
  last.throws_no_grad = draws.below(3) == 0 ? 0 : 1;
}

void add_late_registration(CaseSpec& spec, Draws& draws) {
  MicroSpec& last = after_known_order(spec, draws);
  last.registers = some_layer(spec, draws);
}

// Read for the first time when the order is known, or sometimes only.
void add_unread(CaseSpec& spec, Draws& draws) {
  if (spec.reads == 0) spec.reads = some_layer(spec, draws);
  if (draws.one_in(2)) {
    after_known_order(spec, draws);
    for (std::size_t i = 0; i + 1 < spec.micros.size(); ++i) spec.micros[i].unread = 1;
  } else {
    for (MicroSpec& micro : spec.micros) micro.unread = draws.flag(2);
  }
}

// The last backward over a graph gives it up, though its losses live on.
void add_last_backwards(CaseSpec& spec, Draws& draws) {
  if (draws.one_in(2)) {
    spec.heads = 2;
    spec.is_tiled = spec.tile_wrap = 0;
  }
  for (MicroSpec& micro : spec.micros) {
    micro.keeps = draws.one_in(4) ? 1 : 2;
    if (draws.one_in(2)) micro.losses = 0;
  }
}

// Modules whose outputs need a gradient for something that none of their inputs is.
void add_closed_layers(CaseSpec& spec, Draws& draws) {
  for (LayerSpec& layer : spec.layers) layer.is_closed = draws.flag(2);
  if (draws.one_in(2)) spec.micros.back().idle_forward = 3;
}

// As far ahead as it takes to come back to something, or not quite.
void add_reuse(CaseSpec& spec, Draws& draws) {
  int elements = 0;
  for (const LayerSpec& layer : spec.layers) elements += layer.outputs * layer.inputs;
  spec.reuse = draws.between(1, std::max(elements, 1));
  spec.prefetch = 0;
  if (spec.reads == 0) spec.reads = some_layer(spec, draws);
  spec.reads_late = draws.flag(2);
  spec.registers = draws.flag(2);
  if (spec.windows() < 3) add_equal_windows(spec, draws);
}

}  // namespace

Additions extra_additions() {
  static constexpr Addition kExtras[] = {
      {3, add_gathers},        {4, add_restores},     {2, add_frames}, {4, add_bounds},
      {4, add_leaf_modules},   {3, add_externals},    {3, add_blocks}, {5, add_backwards},
      {5, add_backwards_past}, {6, set_boundary_once}};
  return {kStream, 2, kExtras};
}

Additions visit_additions() {
  static constexpr Addition kVisits[] = {{3, add_looks},
                                         {3, add_kept_graphs},
                                         {4, add_weight_terms},
                                         {4, add_late_read},
                                         {4, add_equal_windows}};
  return {kVisitStream, 3, kVisits};
}

Additions departure_additions() {
  static constexpr Addition kDepartures[] = {{3, add_failed_forwards},
                                             {3, add_late_forward},
                                             {3, add_late_registration},
                                             {4, add_unread},
                                             {3, add_last_backwards},
                                             {3, add_closed_layers},
                                             {3, add_reuse}};
  return {kDepartureStream, 4, kDepartures};
}

}  // namespace zeroproof::train
