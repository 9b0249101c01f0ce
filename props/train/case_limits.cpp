#include "props/train/case_limits.h"

#include "props/train/case_additions.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kLimitStream = 0x6c696d697473ULL;

void need_all(CaseSpec& spec, Draws& draws) {
  spec.needs_all = spec.is_offloaded = 1;
  for (MicroSpec& micro : spec.micros) {
    micro.overflow = 0;
    if (draws.one_in(2)) micro.skips = some_call(spec, draws);
  }
}

void add_interrupts(CaseSpec& spec, Draws& draws) {
  const int last = static_cast<int>(Interrupt::forward);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.interrupt =
        spec.engines == 2 ? static_cast<int>(Interrupt::other) : draws.between(1, last);
    micro.interrupt_at = some_call(spec, draws);
  }
}

void lift(CaseSpec& spec, Draws&) {
  spec.is_lifted = 1;
}

// With what comes before in their places still, if an engine leaves it there.
void add_failures(CaseSpec& spec, Draws& draws) {
  spec.is_scattered = draws.flag(2);
  spec.has_overlap = draws.flag(2);
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.aborts = some_call(spec, draws);
    micro.aborts_managed = draws.flag(2);
    micro.is_uncleared = 1;
  }
}

// In the middle of a layer's backward, of a graph that is kept or not.
void fail_at_weights(CaseSpec& spec, Draws& draws) {
  if (draws.one_in(2)) {
    spec.stage = 3;
    spec.persistence = 0;
  }
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.aborts = some_call(spec, draws);
    micro.aborts_at_weight = 1;
    micro.keeps = draws.below(4);
    micro.is_uncleared = draws.flag(2);
  }
}

}  // namespace

Additions limit_additions() {
  static constexpr Addition kLimits[] = {
      {2, need_all}, {2, add_interrupts}, {2, lift}, {2, add_failures}, {3, fail_at_weights}};
  return {kLimitStream, 3, kLimits};
}

}  // namespace zeroproof::train
