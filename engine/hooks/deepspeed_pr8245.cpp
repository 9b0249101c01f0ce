// The branch of #8245, which no release has: #7886 plus recovery from an aborted backward. The next
// forward clears what it left, engine.backward restores its flag in every exit, and step refuses
// while a backward is incomplete. What was merged of it is deepspeed_0_19_6.cpp.
#include "engine/hooks/manager_policy.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {

std::unique_ptr<HookPolicy> make_deepspeed_pr8245() {
  return std::make_unique<ManagerPolicy>(ManagerPolicyRules{
      .manager = {.first_enter_resets_counters = true, .reset_recovers_aborted_backward = true},
      .running_mark = RunningMark::restored,
  });
}

}  // namespace zeroproof
