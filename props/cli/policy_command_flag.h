#pragma once

#include <memory>
#include <string>

#include "props/cli/flags.h"
#include "props/policy_command/command_policy.h"
#include "sim/protocol/world.h"

namespace zeroproof {

// --policy-command and --policy-timeout: a hook policy that another program decides.
class PolicyCommandFlag {
 public:
  void declare(Flags& flags);

  bool is_given() const { return !command_.empty(); }

  // Starts the command. What it makes policies for must not outlive this object.
  Result<void> start();

  // After start: the name of the policy, and what makes it. Empty without the flag.
  std::string policy() const { return running_ ? running_->hello().name : std::string(); }
  MakePolicy make_policy() const;

  // What the policy itself raised since the last call; empty: no error.
  std::string take_exception() { return running_ ? running_->take_exception() : std::string(); }

  // " --policy-command '...'", for a line that is pasted; empty without the flag.
  std::string words() const;

 private:
  std::string command_;
  std::string seconds_ = "60";
  std::shared_ptr<policy_command::PolicyCommand> running_;
};

}  // namespace zeroproof
