#include "props/train/case_additions.h"

namespace zeroproof::train {

namespace {

constexpr int kTries = 12;  // of additions that change nothing, or do not fit

// The case with it; the same where that cannot be.
CaseSpec with(const CaseSpec& spec, const Addition& addition, Draws& draws) {
  CaseSpec more = spec;
  addition.add(more, draws);
  return why_invalid(more).empty() ? more : spec;
}

}  // namespace

CaseSpec with_drawn(const CaseSpec& spec, const Additions& additions, std::uint64_t seed) {
  Draws draws(seed ^ additions.stream);
  CaseSpec more = spec;
  if (!draws.one_in(additions.one_in)) return more;
  for (const Addition& addition : additions.all)
    if (draws.one_in(addition.one_in)) more = with(more, addition, draws);
  return more;
}

CaseSpec with_few(const CaseSpec& spec, std::span<const Addition> additions, int count,
                  Draws& draws) {
  CaseSpec more = spec;
  for (int tries = 0; count > 0 && tries < kTries; ++tries) {
    const auto index = static_cast<std::size_t>(draws.below(static_cast<int>(additions.size())));
    const CaseSpec next = with(more, additions[index], draws);
    if (next != more) --count;
    more = next;
  }
  return more;
}

int some_call(const CaseSpec& spec, Draws& draws) {
  return draws.between(1, static_cast<int>(spec.calls.size()));
}

int some_layer(const CaseSpec& spec, Draws& draws) {
  return draws.between(1, static_cast<int>(spec.layers.size()));
}

LayerSpec& layer_of_some(CaseSpec& spec, Draws& draws) {
  return spec.layers[static_cast<std::size_t>(some_layer(spec, draws)) - 1];
}

void make_raw(LayerSpec& layer) {
  layer.is_raw = 1;
  layer.has_bias = layer.is_weight_frozen = 0;
}

void move_loss_scale(CaseSpec& spec, Draws& draws, std::size_t windows) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.is_dynamic = 1;
  spec.owns_scale = 0;
  spec.scaling = draws.between(2, 3);
  spec.micros.assign(windows * static_cast<std::size_t>(spec.accumulation), MicroSpec());
}

void overflow_in(CaseSpec& spec, Draws& draws, std::size_t window) {
  spec.micros[window * static_cast<std::size_t>(spec.accumulation)] = {
      .overflow = some_call(spec, draws), .overflow_rank = draws.below(spec.ranks)};
}

bool is_first(const CaseSpec& spec, std::size_t micro) {
  return micro % static_cast<std::size_t>(spec.accumulation) == 0;
}

void load_away(MicroSpec& micro, Draws& draws) {
  if (!loads_away(static_cast<Restores>(micro.restores))) micro.restores = draws.between(1, 3);
}

}  // namespace zeroproof::train
