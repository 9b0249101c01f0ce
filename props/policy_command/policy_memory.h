#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "props/policy_command/policy_reply.h"

namespace zeroproof::policy_command {

using StateId = std::uint32_t;
using ReplyId = std::uint32_t;

// A call of the policy, as HookPolicy has them.
enum class CallKind {
  on_forward_begin,
  on_forward_end,
  on_graph_task_begin,
  on_graph_task_end,
  on_prologue,
  before_gradient,
  after_gradient,
  on_final_callback,
  on_epilogue,
  set_epilogue_ran,
  on_zero_grad,
  on_backward_end,
};

struct Call {
  CallKind kind = CallKind::on_prologue;
  std::int64_t task = -1;  // of a graph task
  bool flag = false;       // raised, refresh_count or ran
};

// What the host answered to a question, and the policy's state then: calls of the policy may have
// come between.
struct Answer {
  std::int64_t value = 0;
  bool is_exception = false;
  StateId state = 0;
};

// What a command has answered so far: a policy is a function of its state, the call, and the
// host's answers. Thus a command is asked each thing twice at most, however many executions ask.
class PolicyMemory {
 public:
  // The number of a state; equal texts have one. Throws PolicyFailure where the same text
  // comes with other counters.
  StateId state_id(const PolicyState& state);
  const PolicyState& state(StateId id) const { return states_[id]; }

  std::optional<ReplyId> find(StateId from, const Call& call) const;
  std::optional<ReplyId> find(ReplyId after, const Answer& answer) const;

  // True the first time that a call is met again: the command is then asked once more, to see that
  // it gives the same answers.
  bool wants_second_look(StateId from, const Call& call) {
    return looked_twice_.insert(key_of(from, call)).second;
  }

  // A reply is added once; the same one may come again. Throws PolicyFailure for another.
  ReplyId add(StateId from, const Call& call, PolicyReply reply);
  ReplyId add(ReplyId after, const Answer& answer, PolicyReply reply);

  const PolicyReply& reply(ReplyId id) const { return replies_[id]; }
  StateId state_after(ReplyId id) const { return states_after_[id]; }

 private:
  using Key = std::array<std::int64_t, 4>;
  using Index = std::map<Key, ReplyId>;

  static Key key_of(StateId from, const Call& call);
  static Key key_of(ReplyId after, const Answer& answer);
  static std::optional<ReplyId> find(const Index& index, const Key& key);
  ReplyId add(Index& index, const Key& key, PolicyReply reply);

  std::vector<PolicyState> states_;
  std::map<std::string, StateId, std::less<>> ids_;
  std::deque<PolicyReply> replies_;  // stays where it is
  std::vector<StateId> states_after_;
  Index calls_;
  Index answers_;
  std::set<Key> looked_twice_;
};

std::string_view call_name(CallKind kind);

// The lines that the command gets.
std::string call_line(const Call& call, const PolicyState& from);
std::string answer_line(Question question, const Answer& answer, const PolicyState& now);

}  // namespace zeroproof::policy_command
