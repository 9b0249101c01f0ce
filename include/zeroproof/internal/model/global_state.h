#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "zeroproof/internal/model/autocast/cast_cache.h"
#include "zeroproof/internal/model/rng.h"
#include "zeroproof/internal/model/torch_release.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// What stands in for linear(): x, weight [out, in], bias or an undefined tensor.
using LinearFunction =
    std::function<Tensor(Autograd& ag, const Tensor& x, const Tensor& weight, const Tensor& bias)>;

// What PyTorch keeps once a process, whatever the thread; compare LocalState.
struct GlobalState {
  TorchRelease release;  // whose behaviour is modelled
  Rng rng;
  CastCache cast_cache;
  LinearFunction linear;  // empty: linear() itself
  // Calls of any engine's backward under way: their loss was divided by the accumulation steps.
  std::int32_t managed_backwards = 0;
  // The accumulation steps that divided the loss of the innermost of them; none: undivided.
  std::optional<double> managed_divisor;
  std::optional<bool> checkpoint_early_stop;  // overrides what a checkpoint itself says (rule K6)
};

}  // namespace zeroproof
