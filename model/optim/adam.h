#pragma once

#include <cstdint>
#include <vector>

#include "model/ops.h"
#include "model/tensor.h"

namespace zeroproof::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool is_decay_decoupled = false;  // AdamW
};

// torch.optim.Adam and AdamW with foreach=False: the reference update, tensor by tensor.
class Adam {
 public:
  struct State {
    std::int64_t step = 0;
    Tensor exp_avg;
    Tensor exp_avg_sq;
  };

  // The parameters' dtype is that of the state. `ops` must outlive it.
  Adam(const Ops& ops, TensorList parameters, const AdamOptions& options);

  // Parameters without a gradient are left alone, their state too.
  void step();
  void zero_grad();  // to none

  const State& state(std::size_t parameter) const { return states_[parameter]; }

 private:
  void update(const Tensor& parameter, State& state) const;

  const Ops& ops_;
  TensorList parameters_;
  AdamOptions options_;
  std::vector<State> states_;
};

}  // namespace zeroproof::optim
