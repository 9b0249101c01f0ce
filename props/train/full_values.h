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

// What an engine counts, as one tensor.
struct StepCounters {
  std::int64_t micro_steps = 0;
  std::int64_t global_steps = 0;
  std::int64_t skipped_steps = 0;
  std::int64_t global_samples = 0;
  double loss_scale = 1.0;

  FullTensor named(const std::string& prefix) const {
    return {prefix + "counters",
            {},
            {static_cast<double>(micro_steps), static_cast<double>(global_steps),
             static_cast<double>(skipped_steps), static_cast<double>(global_samples), loss_scale}};
  }
};

// The prefix of an engine's names.
inline std::string engine_prefix(std::size_t engine) {
  return engine == 0 ? std::string() : "e" + std::to_string(engine) + ".";
}

}  // namespace zeroproof::train
