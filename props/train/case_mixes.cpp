#include "props/train/case_mixes.h"

#include <algorithm>
#include <vector>

#include "props/train/case_additions.h"
#include "props/train/case_fields.h"

namespace zeroproof::train {
namespace {

constexpr int kLayersMost = 3;
constexpr int kWindowsMost = 3;

// One or two layers more than a case needs to have a bucket, a slice and a shard of each kind.
CaseSpec draw_plain_case(Draws& draws) {
  CaseSpec spec;
  const int layers = draws.between(1, kLayersMost);
  for (int i = 0; i < layers; ++i) {
    spec.layers.push_back({.inputs = draws.between(1, 4),
                           .outputs = draws.between(1, 4),
                           .has_bias = draws.flag(2),
                           .is_linked = draws.flag(2),
                           .is_raw = 0});
    if (draws.one_in(3)) make_raw(spec.layers.back());
    spec.calls.push_back({.layer = i});
  }
  spec.ranks = draws.of({1, 2, 2, 2, 3, 4});
  spec.stage = draws.below(4);
  spec.precision = draws.below(4);
  spec.accumulation = draws.of({1, 1, 2});
  spec.micros.resize(static_cast<std::size_t>(spec.accumulation * draws.between(1, kWindowsMost)));
  return spec;
}

std::vector<int*> numbers_of(CaseSpec& spec) {
  std::vector<int*> numbers;
  visit_fields(spec, [&](const char*, int& value, int) { numbers.push_back(&value); });
  return numbers;
}

// Most are flags or choose among a few; the others are sizes of about a layer.
int some_value(Draws& draws) {
  return draws.of({0, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 6, 8, 16, 40});
}

}  // namespace

CaseSpec draw_mixed_case(Draws& draws) {
  CaseSpec spec;
  do {
    spec = draw_plain_case(draws);
  } while (!why_invalid(spec).empty());
  for (int tries = draws.between(10, 40); tries > 0; --tries) {
    CaseSpec next = spec;
    std::vector<int*> numbers = numbers_of(next);
    *numbers[static_cast<std::size_t>(draws.below(static_cast<int>(numbers.size())))] =
        some_value(draws);
    if (why_invalid(next).empty()) spec = next;
  }
  return spec;
}

}  // namespace zeroproof::train
