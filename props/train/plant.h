#pragma once

#include <functional>
#include <memory>

#include "engine/departure.h"
#include "engine/hooks/hook_policy.h"
#include "engine/runtime/runtime.h"
#include "model/tensor.h"

namespace zeroproof {
class Autograd;
}

namespace zeroproof::train {

// A fault that is planted into every engine of a cell, on top of the cell's policy and quirks.
// Null members change nothing. Plain data; the functions are called once an engine, or a rank.
struct Plant {
  Departure departure = {};  // consulted by the engine where its behaviour differs
  std::unique_ptr<HookPolicy> (*decorate_policy)(std::unique_ptr<HookPolicy> policy) = nullptr;
  // What the engine gets in place of the rank's runtime, which outlives it.
  std::unique_ptr<Runtime> (*decorate_runtime)(Runtime& runtime) = nullptr;
  // What a checkpoint does when it runs `body` again; and what the loss of each tile is multiplied
  // by where a tile differentiates it. Both are parts of a framework, though not of an engine.
  TensorList (*recompute)(Autograd& autograd, const std::function<TensorList()>& body) = nullptr;
  double tile_weight = 1.0;
};

}  // namespace zeroproof::train
