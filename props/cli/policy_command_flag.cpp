#include "props/cli/policy_command_flag.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/cli/common_flags.h"
#include "props/cli/shell_quote.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kSecondsMax = 1'000'000;

}  // namespace

void PolicyCommandFlag::declare(Flags& flags) {
  flags.add_value("policy-command", command_,
                  {"COMMAND",
                   "a program that decides in place of --policy, for example 'python -m "
                   "zeroproof_subject.policy deepspeed' (docs/reference/policies.md)"});
  flags.add_value("policy-timeout", seconds_,
                  {"SECONDS", "time limit of each answer of that program (default 60)"});
}

Result<void> PolicyCommandFlag::start() {
  if (!is_given() || running_) return {};
  const auto seconds = parse_count(seconds_, "--policy-timeout");
  if (!seconds) return tl::unexpected(seconds.error());
  const auto limit_s = static_cast<std::int64_t>(std::min(*seconds, kSecondsMax));
  auto started = policy_command::PolicyCommand::start(command_, limit_s * 1'000'000'000);
  if (!started) return tl::unexpected(started.error());
  running_ = std::move(*started);
  return {};
}

MakePolicy PolicyCommandFlag::make_policy() const {
  if (!running_) return {};
  return [running = running_] { return running->make_policy(); };
}

std::string PolicyCommandFlag::words() const {
  return is_given() ? fmt::format(" --policy-command {}", shell_quote(command_)) : std::string();
}

}  // namespace zeroproof
