#include "props/train/case_asides.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "props/train/case_additions.h"
#include "props/train/case_fields.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kAsideStream = 0x617369646573ULL;
constexpr int kUsesWide = 7;  // the bits that one backward's gradient may have in bf16

void add_questions(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) micro.asks = draws.flag(2);
}

void add_scales(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.is_dynamic = spec.scaling = 0;
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.clears = micro.rescales = 1;
  }
}

// Of different ranks different ones.
void add_branches(CaseSpec& spec, Draws& draws) {
  if (draws.one_in(2)) spec.groups = draws.between(2, 3);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    if (micro.skips == 0) micro.skips = some_call(spec, draws);
    micro.skips_on = draws.between(1, spec.ranks);
  }
}

void add_wraps(CaseSpec& spec, Draws& draws) {
  spec.input_grad = 1;
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.wrapped = draws.between(1, 2);
    if (draws.one_in(2)) micro.outstanding = draws.between(1, 3);
  }
}

// `autocasts` where a micro-batch has one.
int region_of(const CaseSpec& spec) {
  return static_cast<Precision>(spec.precision) == Precision::autocast ? 2 : 1;
}

void add_regions(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) micro.autocasts = region_of(spec) * draws.flag(2);
}

void add_blind_loads(CaseSpec& spec, Draws& draws) {
  if (spec.stage == 3 && spec.persistence == 0) spec.persistence = draws.between(1, 6);
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (!is_first(spec, i)) continue;
    load_away(micro, draws);
    micro.blind = 1;
  }
}

// Small contributions of many backwards.
void add_width(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::bf16);
  spec.is_wide = spec.accumulates_float32 = spec.is_wire_float32 = 1;
  if (spec.accumulation < 4 && draws.one_in(2)) {
    spec.accumulation = 4;
    spec.micros.resize(4 * static_cast<std::size_t>(draws.between(1, 2)), spec.micros.back());
  }
  if (draws.one_in(2)) spec.ranks = 4;
  if (draws.one_in(2)) spec.stage = draws.of({0, 2, 3});
  for (MicroSpec& micro : spec.micros) micro.outstanding = micro.overflow = 0;
}

}  // namespace

Additions aside_additions() {
  static constexpr Addition kAsides[] = {{3, add_questions}, {3, add_scales},  {3, add_branches},
                                         {3, add_wraps},     {3, add_regions}, {3, add_blind_loads},
                                         {3, add_width}};
  return {kAsideStream, 3, kAsides};
}

std::string aside_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const auto precision = static_cast<Precision>(spec.precision);
  if (micro.asks < 0 || micro.asks > 3 || micro.rescales < 0 || micro.rescales > 3 ||
      micro.autocasts < 0 || micro.autocasts > 2 || !is_flag(micro.blind) || micro.wrapped < 0 ||
      micro.wrapped > 2 || micro.skips_on < 0 || micro.skips_on > spec.ranks)
    return "a micro-batch out of range";
  const bool is_scaled = precision == Precision::fp16 && spec.is_dynamic == 0;
  if (micro.rescales == 1 && micro.clears == 0) return "a loss scale that is in nobody's way";
  if (micro.rescales != 0 && micro.rescales != 3 && !is_scaled)
    return "a loss scale that is in nobody's way";
  if (micro.blind != 0 && !loads_away(static_cast<Restores>(micro.restores)))
    return "no window that is loaded away";
  if (micro.autocasts != 0 && (micro.autocasts != region_of(spec) || spec.skips_frames != 0))
    return "an autocast region around one of the engine's";
  // What throws or calls engines on some ranks alone would leave the others waiting.
  const bool is_alike = micro.aborts == 0 && micro.interrupt == 0;
  if (micro.skips_on != 0 && (micro.skips == 0 || spec.stage != 0 || !is_alike))
    return "ranks that take different branches";
  // Of stage 3 its second run is one more use of what judges take for released.
  const bool is_simple = spec.stage < 3 && spec.input_grad != 0 && spec.engines == 1 &&
                         spec.heads == 1 && spec.container == 0 && spec.is_tiled == 0 &&
                         spec.skips_frames == 0 && spec.experts == 0 && micro.interrupt == 0;
  return micro.wrapped == 0 || is_simple ? "" : "a checkpoint around what it cannot run again";
}

// Whether an object has nothing but these, by name; whatever else would add, take or keep
// gradients.
template <class Spec>
bool has_alone(Spec spec, std::initializer_list<std::string_view> names) {
  bool is_alone = true;
  visit_fields(spec, [&](const char* name, int value, int simple) {
    is_alone = is_alone && (value == simple || std::ranges::find(names, name) != names.end());
  });
  return is_alone;
}

// Every contribution to a weight is the gradient of a graph task of its own, and the next one, of
// another weight, does not fit into its bucket.
bool flushes_each(const CaseSpec& spec) {
  const auto is_weight = [](const LayerSpec& layer) {
    return layer.outputs > 0 && has_alone(layer, {"inputs", "outputs", "is_linked"});
  };
  const auto is_checkpoint = [](const CallSpec& call) {
    return static_cast<Wrap>(call.wrap) == Wrap::reentrant;
  };
  const auto is_plain = [](const MicroSpec& micro) { return has_alone(micro, {"peeks"}); };
  const auto is_same = [](const CallSpec& a, const CallSpec& b) { return a.layer == b.layer; };
  return spec.stage == 2 && spec.bucket == 1 && spec.input_grad != 0 &&
         (spec.ranks - 1) * spec.uses() <= kUsesWide &&
         has_alone(spec, {"ranks", "stage", "precision", "input_grad", "bucket", "is_manual",
                          "preempts", "clip", "is_sgd", "is_wire_float32", "accumulates_float32",
                          "is_wide", "has_overlap", "is_offloaded"}) &&
         std::ranges::adjacent_find(spec.calls, is_same) == spec.calls.end() &&
         std::ranges::all_of(spec.calls, is_checkpoint) &&
         std::ranges::all_of(spec.layers, is_weight) && std::ranges::all_of(spec.micros, is_plain);
}

// Stage 1 sends the sums of a window through buckets of the model's dtype. In stages 2 and 3 each
// backward's gradient goes there alone, and comes back as the sum of all ranks.
std::string width_problem(const CaseSpec& spec) {
  if (!is_flag(spec.is_wide)) return "a number out of range";
  if (spec.is_wide == 0) return {};
  const auto has_one_forward = [](const MicroSpec& micro) {
    return micro.outstanding == 0 && micro.overflow == 0;
  };
  const auto has_one_backward = [](const MicroSpec& micro) {
    return micro.repeats + micro.block + micro.has_bypass + micro.looks + micro.interrupt +
               micro.keeps + micro.past_engine ==
           0;
  };
  const int bits = std::max(spec.ranks, spec.first_ranks) * spec.uses();
  // Stage 2 keeps the sum of a bucket as its model has it; stage 3 as it came.
  const bool has_room = spec.stage == 3 || bits <= kUsesWide || flushes_each(spec);
  const bool is_alone = spec.stage > 1 && has_room && spec.is_unmanaged + spec.is_tiled == 0 &&
                        spec.heads == 1 && std::ranges::all_of(spec.micros, has_one_backward);
  const bool is_right =
      static_cast<Precision>(spec.precision) == Precision::bf16 && spec.accumulates_float32 != 0 &&
      spec.is_wire_float32 != 0 && (spec.stage == 0 || is_alone) && spec.engines == 1 &&
      spec.uses() <= kUsesWide && std::ranges::all_of(spec.micros, has_one_forward);
  return is_right ? "" : "sums that need no more bits";
}

}  // namespace zeroproof::train
