#pragma once

#include <vector>

#include "model/optim/optimizer.h"
#include "zeroproof/model/optim/options.h"

namespace zeroproof::optim {

// torch.optim.SGD. AutogradError for Nesterov momentum with dampening or without momentum.
class Sgd final : public Optimizer {
 public:
  // `ops` must outlive it.
  Sgd(const Ops& ops, const TensorList& parameters, const SgdOptions& options);
  Sgd(const Ops& ops, const std::vector<ParamGroup<SgdOptions>>& groups);

  void step() override;
  // "momentum_buffer", when there is momentum.
  std::vector<StateEntry> state_entries(std::size_t parameter) const override;

  // One update of one tensor; the buffer is undefined before the first.
  static void update(const Ops& ops, const Tensor& parameter, Tensor grad, Tensor& momentum_buffer,
                     const SgdOptions& options);

 private:
  std::vector<SgdOptions> options_;  // of each parameter
  TensorList momentum_buffers_;      // undefined before the first update
};

}  // namespace zeroproof::optim
