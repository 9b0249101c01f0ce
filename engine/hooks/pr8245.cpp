// #8245 (V3): #7886 plus recovery from an aborted backward: the next forward clears what it left,
// engine.backward restores its flag in every exit, and step refuses while a backward is incomplete.
#include "engine/hooks/manager_policy.h"
#include "engine/hooks/policies.h"

namespace zeroproof {

std::unique_ptr<HookPolicy> make_pr8245() {
  return std::make_unique<ManagerPolicy>(ManagerPolicyRules{
      .manager = {.first_enter_resets_counters = true, .reset_recovers_aborted_backward = true},
      .restores_running_after_exception = true,
  });
}

}  // namespace zeroproof
