// DeepSpeed 0.18.7 to 0.19.5 (#7886): the count is asked for once a phase, and the first enter of a
// step resets the counters, so that hooks of a pre-user backward cannot pollute them.
#include "engine/hooks/manager_policy.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {

std::unique_ptr<HookPolicy> make_deepspeed_0_18_7() {
  return std::make_unique<ManagerPolicy>(ManagerPolicyRules{
      .manager = {.first_enter_resets_counters = true},
  });
}

}  // namespace zeroproof
