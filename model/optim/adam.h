#pragma once

#include <cstdint>
#include <vector>

#include "model/optim/optimizer.h"
#include "zeroproof/model/optim/options.h"

namespace zeroproof::optim {

// torch.optim.Adam and AdamW.
class Adam final : public Optimizer {
 public:
  struct State {
    std::int64_t step = 0;
    Tensor exp_avg;
    Tensor exp_avg_sq;
  };

  // The parameters' dtype is that of the state. `ops` must outlive it.
  Adam(const Ops& ops, const TensorList& parameters, const AdamOptions& options);
  Adam(const Ops& ops, const std::vector<ParamGroup<AdamOptions>>& groups);

  void step() override;
  const State& state(std::size_t parameter) const { return states_[parameter]; }
  std::vector<StateEntry> state_entries(std::size_t parameter) const override;

  // One update of one tensor; a fresh state gets its moments here.
  static void update(const Ops& ops, const Tensor& parameter, Tensor grad, State& state,
                     const AdamOptions& options);

 private:
  std::vector<AdamOptions> options_;  // of each parameter
  std::vector<State> states_;
};

}  // namespace zeroproof::optim
