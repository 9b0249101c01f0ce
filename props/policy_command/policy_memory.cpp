#include "props/policy_command/policy_memory.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "props/policy_command/policy_session.h"

namespace zeroproof::policy_command {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The name of a call, and of its argument where it has one.
struct CallRow {
  std::string_view name;
  std::string_view flag;
  bool has_task = false;
};

constexpr std::array<CallRow, 12> kCalls = {{
    {"on_forward_begin", {}},
    {"on_forward_end", {}},
    {"on_graph_task_begin", {}, true},
    {"on_graph_task_end", "raised", true},
    {"on_prologue", {}},
    {"before_gradient", {}},
    {"after_gradient", "refresh_count"},
    {"on_final_callback", {}},
    {"on_epilogue", {}},
    {"set_epilogue_ran", "ran"},
    {"on_zero_grad", {}},
    {"on_backward_end", "raised"},
}};

[[noreturn]] void fail_differing(const std::string& text) {
  throw PolicyFailure{.error = {ErrorCode::unreadable, text}, .is_nondeterminism = true};
}

const CallRow& row_of(CallKind kind) {
  return kCalls[static_cast<std::size_t>(kind)];
}

}  // namespace

std::string_view call_name(CallKind kind) {
  return row_of(kind).name;
}

StateId PolicyMemory::state_id(const PolicyState& state) {
  const auto [at, is_new] = ids_.emplace(state.text, static_cast<StateId>(states_.size()));
  if (is_new) states_.push_back(state);
  if (states_[at->second] != state)
    fail_differing("one state of the policy command came with two sets of counters: " + state.text);
  return at->second;
}

PolicyMemory::Key PolicyMemory::key_of(StateId from, const Call& call) {
  return {from, static_cast<std::int64_t>(call.kind), call.task, call.flag};
}

PolicyMemory::Key PolicyMemory::key_of(ReplyId after, const Answer& answer) {
  return {after, answer.value, answer.is_exception, answer.state};
}

std::optional<ReplyId> PolicyMemory::find(const Index& index, const Key& key) {
  const auto at = index.find(key);
  return at == index.end() ? std::nullopt : std::optional(at->second);
}

std::optional<ReplyId> PolicyMemory::find(StateId from, const Call& call) const {
  return find(calls_, key_of(from, call));
}

std::optional<ReplyId> PolicyMemory::find(ReplyId after, const Answer& answer) const {
  return find(answers_, key_of(after, answer));
}

ReplyId PolicyMemory::add(StateId from, const Call& call, PolicyReply reply) {
  return add(calls_, key_of(from, call), std::move(reply));
}

ReplyId PolicyMemory::add(ReplyId after, const Answer& answer, PolicyReply reply) {
  return add(answers_, key_of(after, answer), std::move(reply));
}

ReplyId PolicyMemory::add(Index& index, const Key& key, PolicyReply reply) {
  const auto [at, is_new] = index.emplace(key, static_cast<ReplyId>(replies_.size()));
  if (is_new) {
    states_after_.push_back(state_id(reply.state));
    replies_.push_back(std::move(reply));
  } else if (replies_[at->second] != reply) {
    fail_differing(
        "the policy command gave two answers to one call in one state: a policy must be a function "
        "of its state, the call and the host's answers");
  }
  return at->second;
}

std::string call_line(const Call& call, const PolicyState& from) {
  const CallRow& row = row_of(call.kind);
  OrderedJson line = {{"call", row.name}};
  if (row.has_task) line["task"] = call.task;
  if (!row.flag.empty()) line[std::string(row.flag)] = call.flag;
  line["from"] = from.text;
  return line.dump();
}

std::string answer_line(Question question, const Answer& answer, const PolicyState& now) {
  OrderedJson line;
  if (answer.is_exception)
    line["raised"] = true;
  else if (question == Question::has_callback_api)
    line["answer"] = answer.value != 0;
  else
    line["answer"] = answer.value;
  line["from"] = now.text;
  return line.dump();
}

}  // namespace zeroproof::policy_command
