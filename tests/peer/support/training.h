#pragma once

#include <functional>

#include "tests/peer/support/ddp.h"
#include "tests/peer/support/world.h"

namespace zeroproof::peer {

// Where a run is: whose micro-batch of which step.
struct Place {
  int rank = 0;
  int step = 0;
  int micro = 0;
};

enum class BackwardWay {
  manual,
  managed
};  // loss.backward() (with scale() where needed), engine's

// Training of one engine and of the reference side by side.
struct Loop {
  int steps = 1;
  int micro_batches = 1;
  BackwardWay way = BackwardWay::manual;
  bool is_non_scalar = false;                           // output.backward(ones)
  bool scale_wrt_gas = true;                            // false: managed only
  std::function<TensorList(const Place&)> inputs = {};  // default: x and target of width 4
  // From what forward gave; default: its first output.
  std::function<Tensor(Autograd&, const TensorList& outputs, const Place&)> loss = {};
  bool compares_gradients = true;  // at each boundary; the first step's alone if `is_first_only`
  bool is_first_only = false;
  bool compares_parameters = true;  // after each step
  std::function<void(Engined&, const Place&)> after_backward = {};
  DdpOptions reference = {};
};

// The default inputs: {x [2, width], target [2, width]}.
TensorList batch_of(const Place& place, std::int64_t width, DType dtype, std::int64_t rows = 2);

// One forward and its backward.
void run_engine(Rank& rank, Engined& engine, const Loop& loop, const Place& place);
void run_reference(Ddp& ddp, const Loop& loop, const ZeroConfig& config, const Place& place);

// With the number of ranks, the dtype and the loss scale of an engine's configuration.
DdpOptions reference_of(int ranks, const ZeroConfig& config, DdpOptions options = {});

// Runs both; Failed where they differ.
void require_matches_ddp(Rank& rank, const NetMaker& make, const ZeroConfig& config,
                         const Loop& loop);

// The engine alone; the parameters it ends with.
FullTensors train(Rank& rank, const NetMaker& make, const ZeroConfig& config, const Loop& loop);

}  // namespace zeroproof::peer
