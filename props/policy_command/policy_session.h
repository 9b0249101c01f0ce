#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "props/policy_command/policy_reply.h"
#include "props/subject/child_process.h"

namespace zeroproof::policy_command {

// Ends what runs the policy: the command died, gave no answer in time, or one that is not of the
// protocol.
struct PolicyFailure {
  Error error;
  bool is_nondeterminism = false;  // it gave two answers to one question in one state
};

// The lines that go to a policy command and come from it. Not thread-safe.
class PolicySession {
 public:
  // Starts the command and reads its hello. Each line has `limit_ns`.
  static Result<std::unique_ptr<PolicySession>> start(const std::string& command,
                                                      std::int64_t limit_ns);

  // For `start`: the hello has not come yet.
  PolicySession(std::string command, std::int64_t limit_ns,
                std::unique_ptr<subject::ChildProcess> process)
      : command_(std::move(command)), limit_ns_(limit_ns), process_(std::move(process)) {}

  const PolicyHello& hello() const { return hello_; }

  // Sends a call or an answer, and reads what the command says to it. Throws PolicyFailure.
  PolicyReply exchange(const std::string& line);

 private:
  Result<std::string> line_of(subject::ChildProcess::Outcome outcome, std::string line) const;
  subject::Patience patience() const;
  Error failure(ErrorCode code, const std::string& what) const;

  std::string command_;
  std::int64_t limit_ns_;
  std::unique_ptr<subject::ChildProcess> process_;
  PolicyHello hello_;
};

}  // namespace zeroproof::policy_command
