#pragma once

#include <map>
#include <memory>
#include <optional>

#include "engine/zero/stage3/parameter_gatherer.h"
#include "model/custom_function.h"
#include "zeroproof/internal/model/global_state.h"

namespace zeroproof {

// Which tensors of a process are partitioned, and who can gather them. Shared by all engines of
// one Autograd.
class Zero3Registry {
 public:
  struct Owner {
    ParameterGatherer* gatherer = nullptr;
    PartitionedParameter* parameter = nullptr;
  };

  void add(ParameterGatherer& gatherer);
  void remove(ParameterGatherer& gatherer);
  // The owner of the parameter that `tensor` is or, under function transforms, stands for.
  std::optional<Owner> find(const Tensor& tensor) const;
  bool is_empty() const { return owners_.empty(); }

 private:
  std::map<const TensorImpl*, Owner> owners_;
};

// The memory-efficient linear (docs/spec/zero.md 3.10): input, weight [out, in] and bias, undefined
// for none. It saves them by reference, so that a weight that was released meanwhile is gathered
// for the backward and partitioned again, also when that fails (P75). Backward runs in the
// autocast state of forward on `device` (docs/spec/zero.md 4, P80); gradients have the dtypes of
// what was saved. Both arguments must outlive the function's nodes' backwards.
CustomFunction zero3_linear_function(Autograd& autograd,
                                     const std::shared_ptr<const Zero3Registry>& registry,
                                     DeviceType device);

// Makes it the linear of the whole Autograd while any engine has one; what was there before comes
// back with the last.
class Zero3LinearInstallation {
 public:
  Zero3LinearInstallation(Autograd& autograd, ParameterGatherer& gatherer, bool is_installed);
  ~Zero3LinearInstallation();
  Zero3LinearInstallation(const Zero3LinearInstallation&) = delete;
  Zero3LinearInstallation& operator=(const Zero3LinearInstallation&) = delete;

 private:
  Autograd& autograd_;
  ParameterGatherer& gatherer_;
  bool is_installed_;
};

}  // namespace zeroproof
