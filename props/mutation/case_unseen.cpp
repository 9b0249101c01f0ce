#include "props/mutation/case_unseen.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/mutation/case_parameters.h"
#include "props/train/case_detours.h"

namespace zeroproof::mutation {

using train::CaseSpec;
using train::MicroSpec;

reference::Unseen unseen_of(const CaseSpec& spec) {
  const auto any = [&](auto is_so) { return std::ranges::any_of(spec.micros, is_so); };
  const auto nests = [](const MicroSpec& it) { return it.interrupt + it.wrapped + it.detour != 0; };
  const auto idles = [](const MicroSpec& it) {
    return it.idle_forward + it.idles_first + it.detour + it.interrupt + it.throws_no_grad +
                   it.gathers + it.outdates + it.shortage !=
               0 ||
           it.clears >= 3;
  };
  const auto keeps = [](const MicroSpec& it) {
    return it.keeps + it.creates + it.outstanding + it.again + it.repeats + it.losses +
               it.drops_on + it.past_engine + it.has_bypass !=
           0;
  };
  const auto gathers = [](const MicroSpec& it) {
    const auto interrupt = static_cast<train::Interrupt>(it.interrupt);
    return train::gathers_while_running(it) || it.detour != 0 || it.looks != 0 ||
           interrupt == train::Interrupt::changes;
  };
  return {.keeps_graphs = spec.heads > 1 || any(keeps),
          .gathers_inside = any(gathers),
          .skips_sync = any([](const MicroSpec& it) { return it.block != 0; }),
          .has_idle_forwards = any(idles),
          .reads_elsewhere = spec.reads + spec.returns + spec.registers != 0 ||
                             any([](const MicroSpec& it) { return it.registers != 0; }),
          .sets_scale = spec.owns_scale + spec.scales_second != 0 ||
                        any([](const MicroSpec& it) { return it.rescales + it.misscales != 0; }),
          .lacks_gradients = false,
          .has_many_outputs = false,
          .marks_tiles = spec.is_tiled != 0,
          .differentiates_inside = spec.engines > 1 || any(nests)};
}

bool keeps_memory(const CaseSpec& spec) {
  return std::ranges::any_of(spec.micros, [](const MicroSpec& it) {
    return it.keeps + it.creates + it.idle_forward + it.throws != 0 || train::has_abort(it) ||
           train::is_refused_late(it);
  });
}

// A registration at run time names any layer.
void mark_external_uses(const CaseSpec& spec, reference::World& world) {
  const bool names_any =
      std::ranges::any_of(spec.micros, [](const MicroSpec& it) { return it.registers != 0; });
  for (reference::Parameter& parameter : world.parameters) {
    const auto layer = layer_of_name(without_engine(parameter.name));
    const int number = layer ? static_cast<int>(*layer) + 1 : -1;
    parameter.is_read_elsewhere = names_any || number == spec.reads || number == spec.returns;
    parameter.is_returned = number == spec.returns;
  }
}

}  // namespace zeroproof::mutation
