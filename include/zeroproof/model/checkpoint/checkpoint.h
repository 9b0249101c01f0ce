#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>

#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// A part of a program that keeps no activations but runs again in backward. It has to do the same
// each time; what it captures has to outlive the graph.
using CheckpointBody = std::function<TensorList(const TensorList& inputs)>;

enum class CheckpointKind : std::uint8_t {
  reentrant,      // rules K1 to K3: a nested backward runs through a graph of its own
  non_reentrant,  // rules K4 to K11: the graph is the usual one, its saved tensors come back
};

enum class DeterminismCheck : std::uint8_t { none, metadata };

// What surrounds the body: a context manager of Python's. `exit` gets what the body threw, or null,
// and says whether it goes no further; StopRecomputation among it.
struct CheckpointContext {
  std::function<void()> enter;
  std::function<bool(std::exception_ptr error)> exit;
};

struct CheckpointContexts {
  CheckpointContext forward;
  CheckpointContext recompute;  // entered again by each recompute
};

struct CheckpointOptions {
  bool preserves_rng_state = true;
  // Non-reentrant only; called once a forward, empty for none. A forward context that stops an
  // exception leaves no result to return: AutogradError.
  std::function<CheckpointContexts()> contexts = {};
  // Non-reentrant only (rules K6, K10).
  bool stops_early = true;
  DeterminismCheck determinism_check = DeterminismCheck::metadata;
};

// A recompute that did not save what the forward did, or whose tensors are asked for twice
// (rules K5, K10).
class CheckpointError : public AutogradError {
 public:
  using AutogradError::AutogradError;
};

// Ends a recompute that has all it needs (rule K6), out of the middle of an operation. A body may
// see it pass, but has to let it.
struct StopRecomputation {};

// torch.utils.checkpoint. A reentrant one refuses its backward under grad() and backward(inputs=)
// (K2), and has no gradients at all when no input requires any (K1). AutogradError.
TensorList checkpoint(Autograd& autograd, CheckpointKind kind, CheckpointBody body,
                      const TensorList& inputs, const CheckpointOptions& options = {});

// set_checkpoint_early_stop: overrides the option of every checkpoint whose forward runs meanwhile.
class CheckpointEarlyStop {
 public:
  CheckpointEarlyStop(Autograd& autograd, bool stops_early);
  ~CheckpointEarlyStop();
  CheckpointEarlyStop(const CheckpointEarlyStop&) = delete;
  CheckpointEarlyStop& operator=(const CheckpointEarlyStop&) = delete;

 private:
  Autograd& autograd_;
  std::optional<bool> before_;
};

}  // namespace zeroproof
