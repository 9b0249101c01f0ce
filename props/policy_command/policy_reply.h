#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeroproof/engine/hooks/hook_policy.h"
#include "zeroproof/internal/engine/hooks/hook_state_manager.h"
#include "zeroproof/model/backward_state.h"
#include "zeroproof/model/result.h"

namespace zeroproof::policy_command {

// What a policy command may ask while it handles a call: the methods of HookHost.
enum class Question {
  has_callback_api,
  current_graph_task,
  queue_callback,
  count_expected_hooks,
  run_post_hook,
  abandon_gradients,
};

// A policy's state, as the command gives it. Two policies with equal texts behave equally.
struct PolicyState {
  std::string text;
  BackwardState counters;
  bool skips_manual_epilogue = false;
  bool refuses_step = false;
  bool demands_restart = false;

  bool operator==(const PolicyState&) const = default;
};

// A method of the hook-state manager began or ended.
struct ManagerNote {
  ManagerMethod method = ManagerMethod::enter_backward;
  bool is_return = false;
  BackwardState state;
  std::optional<std::int64_t> argument;
  std::optional<bool> returned;
  bool raised = false;

  bool operator==(const ManagerNote&) const = default;
};

// An exception that leaves a call of the policy.
struct PolicyException {
  bool is_of_host = false;  // the host threw it in its answer, and the policy let it pass
  std::string type;
  std::string text;

  bool operator==(const PolicyException&) const = default;
};

// One line of the command: a question, or the end of the call.
struct PolicyReply {
  std::optional<Question> question;
  std::optional<bool> returned;              // at the end of a call
  std::optional<PolicyException> exception;  // instead
  std::vector<ManagerNote> notes;            // since the reply before
  PolicyState state;

  bool operator==(const PolicyReply&) const = default;
};

// The first line of the command.
struct PolicyHello {
  std::string name;  // a word for reports and schedules
  std::map<std::string, std::string> versions;
  PrologueRule prologue_rule = PrologueRule::once_per_forward;
  RunningMark running_mark = RunningMark::restored;
  PolicyState state;  // of a new policy
};

// Errors: code unreadable for lines that the protocol does not have; cannot_run where the command
// says so.
Result<PolicyHello> parse_hello(const std::string& line);
Result<PolicyReply> parse_reply(const std::string& line);

}  // namespace zeroproof::policy_command
