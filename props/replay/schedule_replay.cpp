#include "props/replay/schedule_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "props/exploration_status.h"

namespace zeroproof {
namespace {

constexpr const char* kExpectation = "falsified";
constexpr const char* kNothing = "none";

// Takes the expectation out of the settings: a run does not depend on it.
std::optional<std::vector<std::string>> take_expectation(Schedule& schedule) {
  const auto found = schedule.settings.find(kExpectation);
  if (found == schedule.settings.end()) return std::nullopt;
  std::vector<std::string> numbers;
  std::string_view rest = found->second;
  while (!rest.empty() && rest != kNothing) {
    const std::string_view number = rest.substr(0, rest.find('+'));
    numbers.emplace_back(number);
    rest.remove_prefix(std::min(rest.size(), number.size() + 1));
  }
  schedule.settings.erase(found);
  return numbers;
}

}  // namespace

Schedule expecting(Schedule schedule, const std::vector<Verdict>& verdicts) {
  const std::string numbers = fmt::format("{}", fmt::join(falsified_numbers(verdicts), "+"));
  schedule.settings[kExpectation] = numbers.empty() ? kNothing : numbers;
  return schedule;
}

bool is_schedule_word(const std::string& word) {
  if (is_schedule_text(word)) return true;
  std::error_code error;
  if (!std::filesystem::is_regular_file(word, error)) return false;  // a pipe can be read once
  std::ifstream file(word, std::ios::binary);
  char start[16] = {};
  file.read(start, sizeof start);
  return is_schedule_text(std::string_view(start, static_cast<std::size_t>(file.gcount())));
}

Result<ScheduleReplay> replay_schedule(const std::string& word,
                                       const ScheduleReplayOptions& options) {
  auto schedule =
      is_schedule_text(word) ? parse_schedule(word, "this schedule") : read_schedule_file(word);
  if (!schedule) return tl::unexpected(schedule.error());
  ScheduleReplay replay{.source = word};
  replay.expected = take_expectation(*schedule);
  std::string& policy = schedule->settings["policy"];
  policy = policy_id(policy);
  if (!options.policy.empty() && policy_id(options.policy) != policy) {
    policy = policy_id(options.policy);
    replay.expected.reset();
  }
  if (options.mode && policy_mode_name(*options.mode) != schedule->settings["mode"]) {
    schedule->settings["mode"] = policy_mode_name(*options.mode);
    replay.expected.reset();
  }
  if (!options.make_policy && !find_policy(policy))
    return fail(ErrorCode::usage,
                fmt::format("schedule '{}': the policy '{}' is a program: give the "
                            "--policy-command that it was explored with",
                            word, policy));
  auto run = run_schedule(*schedule, options.make_policy);
  if (!run) return tl::unexpected(run.error());
  replay.run = std::move(*run);
  replay.falsified = falsified_numbers(replay.run.verdicts);
  replay.schedule = std::move(*schedule);
  return replay;
}

}  // namespace zeroproof
