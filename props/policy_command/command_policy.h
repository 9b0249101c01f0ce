#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "props/policy_command/policy_memory.h"
#include "props/policy_command/policy_session.h"
#include "zeroproof/engine/hooks/hook_policy.h"

namespace zeroproof::policy_command {

// A hook policy that another program decides (docs/reference/policies.md): one process for all
// policies of this object, as the program's state goes with each call. Not thread-safe.
class PolicyCommand {
 public:
  // Errors as PolicySession has them.
  static Result<std::shared_ptr<PolicyCommand>> start(const std::string& command,
                                                      std::int64_t limit_ns);

  // For `start`.
  explicit PolicyCommand(std::unique_ptr<PolicySession> session)
      : session_(std::move(session)), initial_(memory_.state_id(session_->hello().state)) {}

  const PolicyHello& hello() const { return session_->hello(); }

  // A new policy. Its calls throw PolicyFailure. The object must outlive
  // it.
  std::unique_ptr<HookPolicy> make_policy();

  // The last exception that the policy itself raised since the last call, as "ValueError: text";
  // empty for none.
  std::string take_exception() { return std::exchange(exception_, {}); }

 private:
  friend class CommandPolicy;

  std::unique_ptr<PolicySession> session_;
  PolicyMemory memory_;
  StateId initial_;
  std::string exception_;
};

}  // namespace zeroproof::policy_command
