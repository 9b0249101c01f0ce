#pragma once

#include <utility>
#include <vector>

#include "model/autocast/autocast.h"
#include "zeroproof/internal/model/rng.h"
#include "zeroproof/model/checkpoint/checkpoint.h"

namespace zeroproof {

// What surrounds the body in forward and a recompute must find again: the random numbers of the
// CPU and of the inputs' devices, and the autocast settings (rules K1, M3).
class ForwardState {
 public:
  // Of the current thread, now.
  ForwardState(Autograd& autograd, const TensorList& inputs, bool preserves_rng_state);

  // The body as in forward, with grad mode on (rules K2, K5). Everything around it is afterwards
  // as it was, also when the body throws; random numbers only if they are preserved.
  TensorList run_again(const CheckpointBody& body, const TensorList& inputs) const;

 private:
  Autograd& autograd_;
  std::vector<std::pair<Device, RngState>> random_;  // empty: not preserved
  AutocastStash autocast_;
};

}  // namespace zeroproof
