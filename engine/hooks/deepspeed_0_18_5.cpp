// DeepSpeed 0.18.5 and 0.18.6 (#7780): a manager per engine; the callback of the graph task runs
// the epilogue, and every hook asks for the expected count again, which is quadratic in the number
// of parameters.
#include "engine/hooks/manager_policy.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {

std::unique_ptr<HookPolicy> make_deepspeed_0_18_5() {
  return std::make_unique<ManagerPolicy>(ManagerPolicyRules{
      .counts_in_every_hook = true,
  });
}

}  // namespace zeroproof
