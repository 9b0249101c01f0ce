#include "props/mutation/case_overlap.h"

#include <algorithm>

#include "props/mutation/case_parameters.h"

namespace zeroproof::mutation {
namespace {

// Two flat buffers that take turns, and one rank that owns all of what is reduced; an abort waits
// for what it then drops.
bool has_two_buffers(const train::CaseSpec& spec) {
  const auto fits = [&](const train::LayerSpec& layer) {
    return layer.outputs * layer.inputs <= spec.bucket && layer.outputs <= spec.bucket;
  };
  return spec.has_overlap != 0 && spec.ranks == 1 && (spec.stage == 1 || spec.stage == 2) &&
         spec.is_scattered == 0 && spec.engines == 1 &&
         (has_layers_alone(spec) || spec.bucket >= 4) && std::ranges::all_of(spec.layers, fits) &&
         std::ranges::none_of(spec.micros, train::has_abort);
}

// Contexts of the user and reads past a module gather as well, and wait for nothing on the host.
bool gathers_for_modules(const train::CaseSpec& spec) {
  const auto gathers = [](const train::MicroSpec& micro) {
    return micro.gathers + micro.detour + micro.looks + micro.has_bypass + micro.past_engine != 0 ||
           micro.interrupt != 0 || micro.idle_forward == 3;
  };
  return spec.stage == 3 && spec.skips_frames == 0 && spec.reads + spec.returns == 0 &&
         std::ranges::none_of(spec.micros, gathers);
}

}  // namespace

hunt::OverlapRules overlap_rules_of(const train::CaseSpec& spec) {
  return {.judges_reductions = has_two_buffers(spec),
          .judges_host = spec.stage == 3,
          .judges_gathers = gathers_for_modules(spec),
          .engines = spec.engines};
}

}  // namespace zeroproof::mutation
