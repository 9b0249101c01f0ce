#include "props/train/case_manners.h"

#include <algorithm>

#include "props/train/case_additions.h"
#include "props/train/case_rates.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kMannerStream = 0x6d616e6e657273ULL;

void leave_out(CaseSpec& spec, Draws& draws) {
  LayerSpec& layer = layer_of_some(spec, draws);
  layer.is_weight_frozen = 0;
  layer.is_frozen = 2;
  spec.lists_frozen = 0;
  if (draws.one_in(2)) spec.groups = draws.between(1, 3);
}

void span_backwards(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  if (draws.one_in(2)) spec.persistence = 0;
  for (MicroSpec& micro : spec.micros) micro.spans = draws.below(3);
}

void span_skipped_frames(CaseSpec& spec, Draws& draws) {
  spec.skips_frames = 1;
  span_backwards(spec, draws);
}

void forget_to_scale(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  constexpr Misuse kUnscaled[] = {Misuse::unscaled_manual, Misuse::unscaled_again};
  for (MicroSpec& micro : spec.micros)
    if (draws.one_in(2)) micro.misuse = static_cast<int>(kUnscaled[draws.below(2)]);
}

// Of gradients that travel in two dtypes, each in a bucket of its own.
void fail_on_two_wires(CaseSpec& spec, Draws& draws) {
  make_plain(spec);
  spec.precision = static_cast<int>(Precision::autocast);
  spec.stage = draws.between(1, 2);
  if (spec.stage == 1) spec.has_overlap = 1;
  spec.micros.assign(static_cast<std::size_t>(2 * spec.accumulation), MicroSpec());
  make_raw(layer_of_some(spec, draws));
  for (MicroSpec& micro : spec.micros) micro.aborts = draws.below(2) * some_call(spec, draws);
}

// Two contexts of the same weights overlap.
bool gathers_inside(const CaseSpec& spec, const MicroSpec& micro) {
  return static_cast<Interrupt>(micro.interrupt) == Interrupt::changes ||
         static_cast<Looks>(micro.looks) == Looks::between || spec.takes_turns != 0;
}

}  // namespace

Additions manner_additions() {
  static constexpr Addition kManners[] = {{3, leave_out},
                                          {3, span_backwards},
                                          {3, span_skipped_frames},
                                          {3, forget_to_scale},
                                          {3, fail_on_two_wires}};
  return {kMannerStream, 6, kManners};
}

std::string manner_problem(const CaseSpec& spec) {
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  for (const MicroSpec& micro : spec.micros) {
    if (micro.spans < 0 || micro.spans > 2) return "a number out of range";
    if (micro.spans == 0) continue;
    if (spec.stage != 3 || is_autocast || gathers_inside(spec, micro))
      return "a context around a backward";
  }
  if (leaves_out(spec) && spec.lists_frozen != 0) return "a group of what is in none";
  return {};
}

}  // namespace zeroproof::train
