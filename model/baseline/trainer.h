#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/optim/optimizer.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/tensor.h"

// The unsharded baseline: one process that trains with everything at hand. What a sharded engine
// has to equal.
namespace zeroproof::baseline {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Row-major numbers of a tensor; none for a gradient that is not there.
struct Values {
  std::string name;
  std::optional<std::vector<double>> values;
};

struct StateValues {
  std::string parameter;
  std::vector<Values> entries;
};

// What one optimizer step saw and left, as plain data, in the order of the parameters.
struct StepRecord {
  std::vector<double> losses;       // of each micro-batch, neither divided nor scaled
  std::vector<Values> gradients;    // accumulated and unscaled, before clipping
  std::optional<double> grad_norm;  // before clipping; none without max_norm
  bool is_skipped = false;          // some gradient was not finite under a loss scale
  std::vector<Values> parameters;   // after the step
  std::vector<StateValues> optimizer_state;
};

struct TrainerOptions {
  bool is_loss_averaged = true;  // each loss is divided by the number of micro-batches
  std::optional<double> loss_scale = std::nullopt;
  std::optional<double> max_norm = std::nullopt;
  optim::ZeroGrad zero_grad = optim::ZeroGrad::to_none;
};

// The loss of one micro-batch, a scalar.
using LossFunction = std::function<Tensor(Autograd&)>;

class Trainer {
 public:
  // Names of the optimizer's parameters; both references must outlive it. A parameter that the
  // optimizer does not have is not trained, but recorded all the same.
  Trainer(Autograd& autograd, optim::Optimizer& optimizer, std::vector<NamedTensor> parameters,
          const TrainerOptions& options = {});

  // One backward a micro-batch, then one step. Throws what a loss or a hook throws.
  StepRecord step(const std::vector<LossFunction>& micro_batches);

 private:
  void accumulate(const std::vector<LossFunction>& micro_batches, StepRecord& record);
  void unscale(StepRecord& record) const;
  std::vector<Values> gradients() const;
  std::vector<StateValues> optimizer_state() const;
  std::string name_of(const Tensor& parameter) const;

  Autograd& autograd_;
  optim::Optimizer& optimizer_;
  std::vector<NamedTensor> parameters_;
  TrainerOptions options_;
};

}  // namespace zeroproof::baseline
