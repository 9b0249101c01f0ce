// #7780 (V1): a manager per engine; the callback of the graph task runs the epilogue, and every
// hook asks for the expected count again, which is quadratic in the number of parameters.
#include "engine/hooks/manager_policy.h"
#include "engine/hooks/policies.h"

namespace zeroproof {

std::unique_ptr<HookPolicy> make_pr7780() {
  return std::make_unique<ManagerPolicy>(ManagerPolicyRules{
      .counts_in_every_hook = true,
  });
}

}  // namespace zeroproof
