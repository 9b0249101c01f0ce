#pragma once

#include "engine/zero/state_visitor.h"
#include "engine/zero/zero_context.h"

namespace zeroproof {

// Gradients of complete backwards that are not reduced yet, a sum for each trained parameter. A
// whole backward's gradient leaves .grad for it, so that a failed backward is kept apart
// from those before.
class LocalSums {
 public:
  explicit LocalSums(ZeroContext& context) : context_(context), sums_(context.parameters.size()) {}

  // In the accumulation dtype; undefined where there is none.
  Tensor& of(const ZeroParameter& parameter) {
    return sums_[static_cast<std::size_t>(parameter.id.value)];
  }

  // Every .grad joins its sum and is cleared. What throws for want of memory has changed no sum.
  void collect();
  void drop();
  void visit_state(StateVisitor& visitor) const;

 private:
  void begin_sums();
  Tensor* begin_sum(ZeroParameter& parameter);

  ZeroContext& context_;
  TensorList sums_;  // by ParamId
};

}  // namespace zeroproof
