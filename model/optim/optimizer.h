#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/ops.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::optim {

enum class ZeroGrad : bool { to_zeros, to_none };

// What an optimizer keeps for one parameter, as in torch's state_dict: "exp_avg". Static names.
struct StateEntry {
  std::string_view name;
  Tensor value;
};

// Parameters that are updated with the same options.
template <class Options>
struct ParamGroup {
  TensorList parameters;
  Options options;
};

// torch.optim with foreach=False: the reference update, tensor by tensor, each kernel rounded as
// upstream's. Parameters without a gradient are left alone, their state too.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  virtual void step() = 0;
  void zero_grad(ZeroGrad how = ZeroGrad::to_none) const;

  // Of all groups, in their order.
  const TensorList& parameters() const { return parameters_; }
  // Empty before the parameter's first update.
  virtual std::vector<StateEntry> state_entries(std::size_t parameter) const = 0;

 protected:
  // `ops` must outlive it.
  explicit Optimizer(const Ops& ops) : ops_(ops) {}
  const Ops& ops() const { return ops_; }
  void add_parameters(const TensorList& parameters);

 private:
  const Ops& ops_;
  TensorList parameters_;
};

}  // namespace zeroproof::optim
