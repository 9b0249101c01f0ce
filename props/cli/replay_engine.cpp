#include "props/cli/replay_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "props/replay/schedule_replay.h"
#include "props/report/engine_report.h"
#include "props/report/search_findings.h"
#include "props/train/engine_replay.h"

namespace zeroproof {
namespace {

bool has_difference(const train::EngineReplay& replay) {
  return !replay.run.findings.empty() || (replay.host && !replay.host->difference.empty());
}

ExitCode exit_code_of(const std::vector<train::EngineReplay>& replays) {
  if (!std::ranges::all_of(replays, &train::EngineReplay::is_reproduced))
    return ExitCode::nondeterminism;
  return std::ranges::any_of(replays, has_difference) ? ExitCode::falsified : ExitCode::held;
}

}  // namespace

void EngineReplayVerb::declare(Flags& flags) {
  flags.add_value("runtime", runtime_,
                  {"NAME",
                   "a schedule of the engine runs in the simulator (sim, default); with host or "
                   "cuda its node order also runs on threads or GPUs, and is compared",
                   {"sim", "host", "cuda"}});
}

Result<Schedule> EngineReplayVerb::schedule_in(const std::string& word) {
  return is_schedule_text(word) ? parse_schedule(word, "this schedule") : read_schedule_file(word);
}

bool EngineReplayVerb::is_meant(const std::vector<std::string>& words) {
  if (words.empty() || !is_schedule_word(words.front())) return false;
  const auto schedule = schedule_in(words.front());
  return schedule && train::is_engine_schedule(*schedule);
}

Result<VerbResult> EngineReplayVerb::run(const std::vector<std::string>& words,
                                         Session& session) const {
  const train::Beside beside = runtime_ == "host"   ? train::Beside::host
                               : runtime_ == "cuda" ? train::Beside::cuda
                                                    : train::Beside::nothing;
  const auto replays = std::make_shared<std::vector<train::EngineReplay>>();
  for (const std::string& word : words) {
    const auto schedule = schedule_in(word);
    if (!schedule) return tl::unexpected(schedule.error());
    if (!train::is_engine_schedule(*schedule))
      return fail(ErrorCode::usage,
                  fmt::format("replay: '{}' is no schedule of the engine: replay it alone", word));
    auto replay = train::replay_engine(word, *schedule, beside);
    if (!replay) return tl::unexpected(replay.error());
    replays->push_back(std::move(*replay));
  }
  VerbResult result;
  result.code = exit_code_of(*replays);
  result.text = [replays, &session] {
    std::string text = session.seed_line();
    for (const train::EngineReplay& replay : *replays)
      text += engine_replay_text(replay, session.palette);
    return text + session.reproduce_line(exit_code_of(*replays));
  };
  result.json = [replays] { return engine_replay_json(*replays); };
  result.junit = [replays] { return engine_replay_cases(*replays); };
  result.findings = [replays] { return located_findings(*replays); };
  return result;
}

}  // namespace zeroproof
