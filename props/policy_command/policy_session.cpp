#include "props/policy_command/policy_session.h"

#include <fmt/format.h>

#include "sim/trace/byte_source.h"

namespace zeroproof::policy_command {

using subject::ChildProcess;

Result<std::unique_ptr<PolicySession>> PolicySession::start(const std::string& command,
                                                            std::int64_t limit_ns) {
  auto process = ChildProcess::start({"sh", "-c", command}, {});
  if (!process) return tl::unexpected(process.error());
  auto session = std::make_unique<PolicySession>(command, limit_ns, std::move(*process));
  std::string first;
  const ChildProcess::Outcome outcome = session->process_->next_line(session->patience(), first);
  const auto line = session->line_of(outcome, std::move(first));
  if (!line) return tl::unexpected(line.error());
  auto hello = parse_hello(*line);
  if (!hello && hello.error().code == ErrorCode::cannot_run)
    return fail(ErrorCode::cannot_run,
                fmt::format("policy command '{}': {}", command, hello.error().text));
  if (!hello) return tl::unexpected(session->failure(hello.error().code, hello.error().text));
  session->hello_ = std::move(*hello);
  return session;
}

PolicyReply PolicySession::exchange(const std::string& line) {
  std::string next;
  const ChildProcess::Outcome outcome = process_->ask(line, patience(), next);
  const auto answer = line_of(outcome, std::move(next));
  if (!answer) throw PolicyFailure{answer.error()};
  auto reply = parse_reply(*answer);
  if (!reply) throw PolicyFailure{failure(reply.error().code, reply.error().text)};
  return std::move(*reply);
}

subject::Patience PolicySession::patience() const {
  return {.limit_ns = limit_ns_, .should_stop = is_read_stopped};
}

Result<std::string> PolicySession::line_of(ChildProcess::Outcome outcome, std::string line) const {
  switch (outcome) {
    case ChildProcess::Outcome::line:
      return line;
    case ChildProcess::Outcome::ended:
      return tl::unexpected(failure(ErrorCode::unreadable, "it ended: " + process_->state()));
    case ChildProcess::Outcome::late:
      return tl::unexpected(
          failure(ErrorCode::unreadable,
                  fmt::format("no answer for {} s (--policy-timeout)", limit_ns_ / 1'000'000'000)));
    case ChildProcess::Outcome::stopped:
      break;
  }
  return tl::unexpected(failure(ErrorCode::unreadable, "interrupted"));
}

Error PolicySession::failure(ErrorCode code, const std::string& what) const {
  std::string text = fmt::format("policy command '{}': {}", command_, what);
  const std::vector<std::string> said = process_->last_errors();
  if (!said.empty()) text += fmt::format("; it said: {}", said.back());
  return {code, text};
}

}  // namespace zeroproof::policy_command
