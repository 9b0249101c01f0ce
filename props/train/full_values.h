#pragma once

#include <string>
#include <vector>

#include "zeroproof/engine/engine.h"

namespace zeroproof::train {

// The results of one window: whole tensors, in the order of engines and parameters, names
// beginning with "e1." and so on for all engines but the first. Plain data.
struct WindowValues {
  std::vector<FullTensor> gradients;   // what the step used, unscaled
  std::vector<FullTensor> parameters;  // master weights after it
  std::vector<FullTensor> weights;     // what the module computes with
  std::vector<FullTensor> states;      // of the optimizer
  std::vector<FullTensor> records;     // what the program recorded besides
  std::vector<FullTensor> counters;    // of each engine after the step: steps, samples, loss scale
  std::vector<StepOutcome> outcomes;   // of the steps at boundaries
  // Of the baseline: what the ranks after the first recorded, in their order.
};

// What an engine counts, in the order of reference::WholeEngine::counters().
inline std::vector<double> counters_of(const Engine& it) {
  return {static_cast<double>(it.micro_steps()), static_cast<double>(it.global_steps()),
          static_cast<double>(it.skipped_steps()), static_cast<double>(it.global_samples()),
          it.loss_scale()};
}

// The prefix of an engine's names.
inline std::string engine_prefix(std::size_t engine) {
  return engine == 0 ? std::string() : "e" + std::to_string(engine) + ".";
}

}  // namespace zeroproof::train
