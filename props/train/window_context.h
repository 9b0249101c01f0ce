#pragma once

#include <cstddef>

#include "props/train/case_spec.h"
#include "props/train/engine_target.h"
#include "props/train/generated_model.h"
#include "props/train/pass.h"

namespace zeroproof::train {

// What every part of a generated window works on; they must outlive it. Not thread-safe: a rank's
// own.
struct WindowContext {
  const CaseSpec& spec;
  Pass& pass;
  EngineTarget* engines = nullptr;  // null: the baseline
  bool is_lost = false;             // the window will be loaded away
};

WindowContext context_of(const CaseSpec& spec, Pass& pass, bool is_lost);

// Of one engine of a generated program; ZP_CHECKs that it is one.
GeneratedModel& model_of(Pass& pass, std::size_t engine);

}  // namespace zeroproof::train
