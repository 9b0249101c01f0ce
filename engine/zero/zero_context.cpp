#include "engine/zero/zero_context.h"

namespace zeroproof {

double ZeroContext::averaging_divisor() const {
  if (config.gradient_allreduce_op == GradientAllreduceOp::sum) return 1.0;
  return static_cast<double>(runtime.group(GroupKind::data).size()) /
         static_cast<double>(runtime.group(GroupKind::sequence).size());
}

}  // namespace zeroproof
