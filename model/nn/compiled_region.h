#pragma once

#include <functional>
#include <memory>

#include "zeroproof/model/nn/module.h"

namespace zeroproof::nn {

// What a compiled graph does with the parameters that one module of it uses.
struct RegionOperations {
  std::function<void(const TensorList& parameters)> gather;   // before they are used
  std::function<void(const TensorList& parameters)> release;  // after their last use
  // Takes a complete gradient out of the graph, before the release; what it returns accumulates
  // instead. Optional: a parameter that was empty when the graph was made has to have its
  // gradient taken out, since its AccumulateGrad accepts an empty one only (rule A6).
  std::function<Tensor(const Tensor& parameter, const Tensor& grad)> reduce = {};
};

// A module under DeepCompile: it and everything below it lose their hooks for good, and every
// module there that has parameters gets operations of the graph instead. Forward gathers before
// the module and releases after it; so does backward, where the release comes once the gradients
// of all parameters and inputs are complete and before any of these accumulates. Without a
// graph (grad mode off, no input needs a gradient) only the forward ones run.
// `module` must not move; the region takes its operations away again at its end.
class CompiledRegion {
 public:
  CompiledRegion(Module& module, RegionOperations operations);
  ~CompiledRegion();
  CompiledRegion(const CompiledRegion&) = delete;
  CompiledRegion& operator=(const CompiledRegion&) = delete;

  // A frame that the compiler skipped, e.g. for a graph break in a loop: from now on the region
  // runs eagerly, without gathers or releases. Graphs made before keep their operations.
  void set_skipped(bool is_skipped) { *is_skipped_ = is_skipped; }
  bool is_skipped() const { return *is_skipped_; }

 private:
  Module& module_;
  std::shared_ptr<bool> is_skipped_ = std::make_shared<bool>(false);
};

}  // namespace zeroproof::nn
