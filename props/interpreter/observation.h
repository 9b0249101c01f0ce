#pragma once

#include <string>
#include <vector>

#include "zeroproof/model/tensor.h"

namespace zeroproof::program {

// What is compared between an engine and the unsharded reference.
enum class Observed : std::uint8_t {
  loss,       // of a forward, or as backward() and scale() return it
  gradients,  // that the next step uses, unscaled
  update,     // masters, weights and optimizer state after a step
  outcome,    // whether a step was applied, or overflowed
  norm,       // that it reports
  counters,   // steps, samples, loss scale
  refusal,    // that what is refused is refused, and no other state changes
  value,      // what the user reads
  saved       // what a checkpoint holds
};

// One thing that a rank saw at one statement.
struct Observation {
  Observed what = Observed::value;
  std::string name;  // "g1", "l0.linear.weight/exp_avg", …
  Shape sizes = {};
  std::vector<double> values = {};
  bool is_unspecified = false;  // of the reference: whatever the engine sees is right
};

using Observations = std::vector<Observation>;

}  // namespace zeroproof::program
