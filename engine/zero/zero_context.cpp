#include "engine/zero/zero_context.h"

#include "zeroproof/engine/hooks/hook_policy.h"

namespace zeroproof {

double ZeroContext::averaging_divisor() const {
  if (config.gradient_allreduce_op == GradientAllreduceOp::sum) return 1.0;
  return static_cast<double>(runtime.group(GroupKind::data).size()) /
         static_cast<double>(runtime.group(GroupKind::sequence).size());
}

GradientAveraging ZeroContext::averaging(bool is_before) const {
  return is_before
             ? GradientAveraging::before(averaging_divisor())
             : GradientAveraging::around(config.gradient_predivide_factor, averaging_divisor());
}

void ZeroContext::clear_grads() const {
  for (const ZeroParameter& parameter : parameters) {
    parameter.tensor.set_grad({});
  }
}

void ZeroContext::set_epilogue_ran(bool ran) const {
  if (policy != nullptr) policy->set_epilogue_ran(ran);
}

}  // namespace zeroproof
