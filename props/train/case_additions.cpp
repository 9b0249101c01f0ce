#include "props/train/case_additions.h"

namespace zeroproof::train {

CaseSpec with_each(const CaseSpec& spec, std::span<const Addition> additions, Draws& draws) {
  CaseSpec more = spec;
  for (const Addition& addition : additions) {
    if (!draws.one_in(addition.one_in)) continue;
    CaseSpec with = more;
    addition.add(with, draws);
    if (why_invalid(with).empty()) more = with;
  }
  return more;
}

int some_call(const CaseSpec& spec, Draws& draws) {
  return draws.between(1, static_cast<int>(spec.calls.size()));
}

int some_layer(const CaseSpec& spec, Draws& draws) {
  return draws.between(1, static_cast<int>(spec.layers.size()));
}

bool is_first(const CaseSpec& spec, std::size_t micro) {
  return micro % static_cast<std::size_t>(spec.accumulation) == 0;
}

void load_away(MicroSpec& micro, Draws& draws) {
  if (!loads_away(static_cast<Restores>(micro.restores))) micro.restores = draws.between(1, 3);
}

}  // namespace zeroproof::train
