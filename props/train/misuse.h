#pragma once

#include <functional>

#include "props/train/case_spec.h"
#include "props/train/engine_target.h"

namespace zeroproof::train {

// Whether the call throws this error.
bool is_refused_with(EngineErrorId id, const std::function<void()>& call);

// Does to an engine of the case what its `misuse` says; whether it was refused as documented. All
// ranks call; nothing of it stays. `differentiate_unscaled` runs a backward past the engine.
bool is_refused(Engine& engine, const CaseSpec& spec, Misuse misuse,
                const std::function<void()>& differentiate_unscaled);

// Whether a loss scale that none may be is refused, of every engine and of one that would be made
// of the first one's model; nothing of it stays. There are no gradients.
bool refuses_loss_scale(EngineTarget& engines, double loss_scale);

}  // namespace zeroproof::train
