#include "props/train/detour.h"

#include "props/train/checkpoint_use.h"
#include "props/train/user_calls.h"
#include "props/train/user_gradients.h"
#include "props/train/weight_visit.h"
#include "props/train/window_records.h"

namespace zeroproof::train {
namespace {

constexpr const char* kDetourTag = "kept";

// Of a window that has begun, a load drops the gradients.
void use_checkpoint(const CaseSpec& spec, Pass& pass, Detour detour) {
  int faults = 0;
  if (dynamic_cast<EngineTarget*>(&pass.target())) {
    CheckpointUse checkpoints(spec, pass);
    checkpoints.save(kDetourTag);
    if (detour == Detour::load) checkpoints.load(kDetourTag);
    faults = checkpoints.faults();
  } else if (detour == Detour::load) {
    clear_gradients(spec, pass);
  }
  record_number(pass, "faults of checkpoints", faults);
}

void take(const CaseSpec& spec, Pass& pass, Detour detour) {
  switch (detour) {
    case Detour::none:
      return;
    case Detour::save:
    case Detour::load:
      return use_checkpoint(spec, pass, detour);
    case Detour::clear:
      return clear_gradients(spec, pass);
    case Detour::peek:
      return record_masters(pass);
    case Detour::look:
      return visit_weights(spec, pass, Gathers::looks);
  }
}

void take_detour(const CaseSpec& spec, Pass& pass, const MicroSpec& micro) {
  const auto detour = static_cast<Detour>(micro.detour);
  if (place_of(micro) != DetourPlace::context) return take(spec, pass, detour);
  TensorList all;
  for (const nn::NamedParameter& named : pass.target().module(0).named_parameters())
    all.push_back(named.tensor);
  with_whole_weights(spec, pass, all, [&] { take(spec, pass, detour); });
}

}  // namespace

void take_detour_at(const CaseSpec& spec, Pass& pass, const MicroSpec& micro, DetourPlace place) {
  if (micro.detour != 0 && place_of(micro) == place) take_detour(spec, pass, micro);
}

}  // namespace zeroproof::train
