#include "props/train/case_limits.h"

#include "props/train/draws.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kLimitStream = 0x6c696d697473ULL;

int some_call(const CaseSpec& spec, Draws& draws) {
  return draws.between(1, static_cast<int>(spec.calls.size()));
}

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

}  // namespace

CaseSpec with_limits(const CaseSpec& spec, std::uint64_t seed) {
  Draws draws(seed ^ kLimitStream);
  if (!draws.one_in(3)) return spec;
  CaseSpec more = spec;
  for (const auto add : {need_all, add_interrupts, lift, add_failures}) {
    if (!draws.one_in(2)) continue;
    CaseSpec with = more;
    add(with, draws);
    if (why_invalid(with).empty()) more = with;
  }
  return more;
}

}  // namespace zeroproof::train
