#include "props/train/case_spec.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeroproof::train {
namespace {

// Of what the user's hooks call in its backwards.
int interrupting_forwards(const CaseSpec& spec, const MicroSpec& micro) {
  const auto interrupt = static_cast<Interrupt>(micro.interrupt);
  if (interrupt != Interrupt::forward && interrupt != Interrupt::other &&
      interrupt != Interrupt::fails && interrupt != Interrupt::own &&
      interrupt != Interrupt::joined && interrupt != Interrupt::steps &&
      interrupt != Interrupt::breaks)
    return 0;
  const int runs = 1 + (micro.repeats != 0 ? 1 : 0) + (micro.clears == 2 ? 1 : 0);
  return (1 + (micro.outstanding != 0 ? 1 : 0)) * runs * spec.heads;
}

// Of manual backwards that are refused.
int refused_forwards(const MicroSpec& micro) {
  const auto misuse = static_cast<Misuse>(micro.misuse);
  const bool is_refused = is_manual_misuse(misuse) || misuse == Misuse::unfed_leaf;
  return (is_refused ? 1 : 0) + (micro.aborts_on_loss == 2 ? 1 : 0);
}

}  // namespace

int CaseSpec::uses() const {
  int most = 1;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    int uses = 0;
    for (const CallSpec& call : calls) uses += call.layer == static_cast<int>(layer) ? 1 : 0;
    most = std::max(most, uses);
  }
  const bool bypasses = std::ranges::any_of(
      micros, [](const MicroSpec& it) { return it.has_bypass + it.past_engine != 0; });
  const bool has_twins =
      std::ranges::any_of(layers, [](const LayerSpec& layer) { return layer.has_twin != 0; });
  return (most + (bypasses ? 1 : 0) + (has_twins ? 1 : 0) + (reads != 0 ? 1 : 0) +
          (returns != 0 ? 1 : 0)) *
         heads * engines;
}

int CaseSpec::forwards() const {
  int most = 1;
  int count = 0;
  for (std::size_t i = 0; i < micros.size(); ++i) {
    if (i % static_cast<std::size_t>(accumulation) == 0) count = 0;
    const MicroSpec& micro = micros[i];
    const int before = count;
    const bool has_three = static_cast<Outstanding>(micro.outstanding) == Outstanding::three;
    const int trained = (1 + (has_three                ? 2
                              : micro.outstanding != 0 ? 1
                                                       : 0)) *
                        (1 + (micro.repeats != 0 ? 1 : 0)) * (1 + micro.again);
    count +=
        trained + (micro.clears >= 4 ? trained * heads : 0) + (micro.idle_forward != 0 ? 1 : 0) +
        (has_abort(micro) ? 1 : 0) + (runs_in_context(micro) ? 1 : 0) +
        (micro.throws != 0 ? 1 : 0) + (micro.abandons != 0 ? 1 : 0) + refused_forwards(micro) +
        (micro.past_engine == 3 ? 0 : micro.past_engine) + interrupting_forwards(*this, micro) +
        (micro.clears == 1 || micro.clears == 2 ? 1 + (micro.outstanding != 0 ? 1 : 0) : 0);
    if (takes_turns != 0) count += count - before;
    most = std::max(most, count + needs_all + has_floor);
  }
  return most;
}

int CaseSpec::parameters() const {
  int count = 0;
  for (const LayerSpec& layer : layers) count += 1 + layer.has_bias + layer.has_twin;
  if (experts != 0) count += 2;
  return count * engines;
}

bool is_shared(const CaseSpec& spec, const CallSpec& call) {
  return std::ranges::count(spec.calls, call.layer, &CallSpec::layer) > 1;
}

bool leaves_out(const CaseSpec& spec) {
  return std::ranges::any_of(spec.layers, [](const LayerSpec& it) { return it.is_frozen == 2; });
}

bool is_left_out(const CaseSpec& spec, std::string_view parameter) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (spec.layers[i].is_frozen == 2 && parameter.starts_with(fmt::format("l{}.", i))) return true;
  return false;
}

bool has_checkpoints(const CaseSpec& spec) {
  return std::ranges::any_of(spec.calls, [](const CallSpec& call) { return call.wrap != 0; });
}

}  // namespace zeroproof::train
