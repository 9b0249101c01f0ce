#include "props/policy_command/command_policy.h"

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <vector>

#include "sim/protocol/event_log.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof::policy_command {

class CommandPolicy final : public HookPolicy {
 public:
  explicit CommandPolicy(PolicyCommand& command) : command_(command), now_(command.initial_) {}

  PrologueRule prologue_rule() const override { return command_.hello().prologue_rule; }
  RunningMark running_mark() const override { return command_.hello().running_mark; }
  void on_forward_begin(HookHost& host) override { run(&host, {CallKind::on_forward_begin}); }
  void on_forward_end(HookHost& host) override { run(&host, {CallKind::on_forward_end}); }
  void on_graph_task_begin(HookHost& host, GraphTaskId task) override {
    run(&host, {CallKind::on_graph_task_begin, task.value});
  }
  void on_graph_task_end(HookHost& host, GraphTaskId task, bool raised) override {
    run(&host, {CallKind::on_graph_task_end, task.value, raised});
  }
  void on_prologue(HookHost& host) override { run(&host, {CallKind::on_prologue}); }
  bool before_gradient(HookHost& host) override {
    return run(&host, {CallKind::before_gradient}).value_or(false);
  }
  void after_gradient(HookHost& host, bool refresh_count) override {
    run(&host, {CallKind::after_gradient, -1, refresh_count});
  }
  void on_final_callback(HookHost& host) override { run(&host, {CallKind::on_final_callback}); }
  void on_epilogue(HookHost& host) override { run(&host, {CallKind::on_epilogue}); }
  void set_epilogue_ran(bool ran) override { run(nullptr, {CallKind::set_epilogue_ran, -1, ran}); }
  void on_zero_grad() override { run(nullptr, {CallKind::on_zero_grad}); }
  void on_backward_end(HookHost& host, bool raised) override {
    run(&host, {CallKind::on_backward_end, -1, raised});
  }
  bool skips_manual_epilogue() const override { return facts().skips_manual_epilogue; }
  bool refuses_step() const override { return facts().refuses_step; }
  bool demands_restart() const override { return facts().demands_restart; }
  void set_observer(ManagerObserver* observer) override { observer_ = observer; }
  BackwardState state() const override { return facts().counters; }
  // The numbers of states are equal exactly where their texts are.
  void append_state(std::string& bytes) const override { append_bytes(bytes, now_); }

 private:
  // A call under way. Where the command has to be asked, it is led to the same place first.
  struct Frame {
    StateId from;
    Call call;
    std::vector<std::pair<ReplyId, Answer>> answers;  // so far
    bool is_live = false;                             // the command waits for the next answer
  };

  const PolicyState& facts() const { return command_.memory_.state(now_); }

  std::optional<bool> run(HookHost* host, const Call& call) {
    PolicyMemory& memory = command_.memory_;
    Frame frame{.from = now_, .call = call, .answers = {}};
    std::optional<ReplyId> known = memory.find(now_, call);
    const bool is_remembered = known && !memory.wants_second_look(now_, call);
    ReplyId at = is_remembered ? *known : ask(frame);
    std::exception_ptr of_host;
    while (true) {
      const PolicyReply& reply = memory.reply(at);
      now_ = memory.state_after(at);
      report(reply.notes);
      if (!reply.question) return end(reply, of_host);
      if (host == nullptr) fail_call(call, "asks the host, which this call has not");
      Answer answer;
      try {
        answer.value = answer_of(*host, *reply.question);
      } catch (const SimulatedException&) {
        answer.is_exception = true;
        of_host = std::current_exception();
      }
      answer.state = now_;
      frame.answers.emplace_back(at, answer);
      known = memory.find(at, answer);
      at = known && !frame.is_live ? *known : ask(frame);
    }
  }

  // The command's reply to the last answer of the frame, or to its call.
  ReplyId ask(Frame& frame) {
    PolicyMemory& memory = command_.memory_;
    if (frame.is_live) return send(frame, frame.answers.size());
    ReplyId at = memory.add(frame.from, frame.call,
                            exchange(call_line(frame.call, memory.state(frame.from))));
    for (std::size_t done = 1; done <= frame.answers.size(); ++done) at = send(frame, done);
    frame.is_live = true;
    return at;
  }

  ReplyId send(const Frame& frame, std::size_t answers) {
    const auto& [at, answer] = frame.answers[answers - 1];
    PolicyMemory& memory = command_.memory_;
    const Question question = *memory.reply(at).question;
    return memory.add(at, answer,
                      exchange(answer_line(question, answer, memory.state(answer.state))));
  }

  PolicyReply exchange(const std::string& line) { return command_.session_->exchange(line); }

  void report(const std::vector<ManagerNote>& notes) const {
    if (observer_ == nullptr) return;
    for (const ManagerNote& note : notes) {
      if (note.is_return)
        observer_->on_manager_return(note.method, note.state, note.returned, note.raised);
      else
        observer_->on_manager_call(note.method, note.state, note.argument);
    }
  }

  static std::int64_t answer_of(HookHost& host, Question question) {
    switch (question) {
      case Question::has_callback_api:
        return host.has_callback_api() ? 1 : 0;
      case Question::current_graph_task:
        return host.current_graph_task().value;
      case Question::queue_callback:
        host.queue_callback();
        return 0;
      case Question::count_expected_hooks:
        return host.count_expected_hooks();
      case Question::run_post_hook:
        host.run_post_hook();
        return 0;
      case Question::abandon_gradients:
        host.abandon_gradients();
        return 0;
    }
    return 0;
  }

  std::optional<bool> end(const PolicyReply& reply, const std::exception_ptr& of_host) {
    if (!reply.exception) return reply.returned;
    if (reply.exception->is_of_host && of_host) std::rethrow_exception(of_host);
    command_.exception_ = fmt::format("{}: {}", reply.exception->type, reply.exception->text);
    throw SimulatedException{reply.exception->type, reply.exception->text};
  }

  [[noreturn]] static void fail_call(const Call& call, std::string_view what) {
    throw PolicyFailure{
        {ErrorCode::unreadable, fmt::format("policy command: {} {}", call_name(call.kind), what)}};
  }

  PolicyCommand& command_;
  StateId now_;
  ManagerObserver* observer_ = nullptr;
};

Result<std::shared_ptr<PolicyCommand>> PolicyCommand::start(const std::string& command,
                                                            std::int64_t limit_ns) {
  auto session = PolicySession::start(command, limit_ns);
  if (!session) return tl::unexpected(session.error());
  return std::make_shared<PolicyCommand>(std::move(*session));
}

std::unique_ptr<HookPolicy> PolicyCommand::make_policy() {
  return std::make_unique<CommandPolicy>(*this);
}

}  // namespace zeroproof::policy_command
