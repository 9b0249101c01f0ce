// #8135 (X2, open): #7886 plus a prologue for each backward over a retained graph: the output
// hook's flag is keyed by graph task. engine.backward restores its flag in every exit. The manager
// is unchanged: its callback flag is stale in the second backward (H23).
#include "engine/hooks/manager_policy.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {

std::unique_ptr<HookPolicy> make_x2() {
  return std::make_unique<ManagerPolicy>(ManagerPolicyRules{
      .manager = {.first_enter_resets_counters = true},
      .running_mark = RunningMark::restored,
      .prologue = PrologueRule::once_per_graph_task,
  });
}

}  // namespace zeroproof
