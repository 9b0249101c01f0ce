#pragma once

#include <functional>

#include "engine/engine.h"
#include "props/train/case_spec.h"

namespace zeroproof::train {

// Whether the call throws this error.
bool is_refused_with(EngineErrorId id, const std::function<void()>& call);

// Does to an engine of the case what its `misuse` says; whether it was refused as documented. All
// ranks call; nothing of it stays. `differentiate_unscaled` runs a backward past the engine.
bool is_refused(Engine& engine, const CaseSpec& spec, Misuse misuse,
                const std::function<void()>& differentiate_unscaled);

}  // namespace zeroproof::train
