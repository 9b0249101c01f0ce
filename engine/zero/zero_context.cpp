#include "engine/zero/zero_context.h"

#include "engine/hooks/hook_policy.h"

namespace zeroproof {

double ZeroContext::averaging_divisor() const {
  const bool is_averaged = departs("S53"_bug) && config.stage == 0;  // ZeRO alone was taught
  if (config.gradient_allreduce_op == GradientAllreduceOp::sum && !is_averaged) return 1.0;
  if (departs("R81"_bug))  // every rank of the job
    return static_cast<double>(data.size() * tensor.size()) /
           static_cast<double>(runtime.group(GroupKind::sequence).size());
  return static_cast<double>(runtime.group(GroupKind::data).size()) /
         static_cast<double>(runtime.group(GroupKind::sequence).size());
}

void ZeroContext::set_epilogue_ran(bool ran) const {
  if (policy != nullptr) policy->set_epilogue_ran(ran);
}

}  // namespace zeroproof
