// DeepSpeed 0.19.6 to 0.19.8 (#8245 as it was merged): #7886's manager as it was. engine.backward
// counts its calls and takes each back in every exit. Outside it, a depth above one is taken for
// what an aborted engine.backward left, and ends the post hook without an epilogue. No call resets
// that depth: a sum of two outputs (N1), a managed sum before (N2) and an aborted manual backward
// (N3) leave one, too.
#include "engine/hooks/manager_policy.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {

std::unique_ptr<HookPolicy> make_deepspeed_0_19_6() {
  return std::make_unique<ManagerPolicy>(ManagerPolicyRules{
      .manager = {.first_enter_resets_counters = true},
      .running_mark = RunningMark::counted,
      .skips_epilogue_above_depth_one = true,
  });
}

}  // namespace zeroproof
