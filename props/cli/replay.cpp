// `zeroproof replay`: recorded traces against queue rules, manager and properties.
#include "props/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "props/cli/interrupt.h"
#include "props/cli/verb.h"
#include "props/nearest_name.h"
#include "props/replay/trace_paths.h"
#include "props/report/json.h"
#include "props/report/replay_junit.h"
#include "props/report/replay_text.h"

namespace zeroproof {
namespace {

Result<ReplayLevels> parse_levels(const std::vector<std::string>& words) {
  if (words.empty()) return ReplayLevels{};
  constexpr std::array<std::string_view, 3> kNames = {"queue", "state", "properties"};
  for (const std::string& word : words) {
    if (std::find(kNames.begin(), kNames.end(), word) == kNames.end()) {
      return fail(ErrorCode::usage, fmt::format("replay: --levels: unknown level '{}': {}", word,
                                                did_you_mean(word, kNames)));
    }
  }
  const auto has = [&](std::string_view name) {
    return std::find(words.begin(), words.end(), name) != words.end();
  };
  return ReplayLevels{has("queue"), has("state"), has("properties")};
}

ExitCode exit_code_of(const ReplayReport& report) {
  const ReplaySummary summary = report.summary();
  if (summary.unreadable > 0) return ExitCode::unreadable;
  return summary.mismatched > 0 ? ExitCode::falsified : ExitCode::held;
}

class ReplayVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    std::vector<std::string_view> policies;
    for (const PolicyInfo& info : policy_catalogue()) policies.push_back(info.id);
    flags.add_words(words_,
                    {"TRACE", "traces, folders of traces, or one schedule (*.zps, zps1:...)"});
    flags.add_value("policy", policy_,
                    {"NAME", "drive the state level with this policy", policies});
    flags.add_value("mode", mode_,
                    {"MODE",
                     "graph_task_callback or count_fallback",
                     {"graph_task_callback", "count_fallback"}});
    flags.add_list("levels", levels_, {"LIST", "some of queue,state,properties (default: all)"});
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.empty()) {
      return fail(ErrorCode::usage, "replay: name at least one trace, folder or schedule");
    }
    return replay_traces(session);
  }

 private:
  Result<VerbResult> replay_traces(Session& session) {
    ReplayOptions options{.policy = policy_};
    const auto levels = parse_levels(levels_);
    if (!levels) return tl::unexpected(levels.error());
    options.levels = *levels;
    if (!mode_.empty()) options.mode = *policy_mode_of(mode_);
    std::vector<std::string> paths;
    for (const std::string& word : words_) {
      const auto found = trace_paths(word);
      if (!found) return tl::unexpected(found.error());
      paths.insert(paths.end(), found->begin(), found->end());
    }
    Replay replay(options, was_interrupted);
    ProgressLine progress(session.common.progress);
    ProgressView view{.task = "replay", .runs_max = paths.size()};
    for (const std::string& path : paths) {
      if (was_interrupted()) break;
      if (auto added = replay.add(path); !added) return tl::unexpected(added.error());
      ++view.runs;
      progress.update([&] { return view; });
    }
    if (paths.size() > 1) progress.finish(view);
    return result_of(session, replay.finish());
  }

  Result<VerbResult> result_of(Session& session, ReplayReport report) {
    report.is_interrupted = was_interrupted();
    const auto shared = std::make_shared<const ReplayReport>(std::move(report));
    const ExitCode code = exit_code_of(*shared);
    return VerbResult{.code = code,
                      .text =
                          [shared, code, &session] {
                            return session.seed_line() + replay_text(*shared, session.palette) +
                                   session.reproduce_line(code);
                          },
                      .json = [shared] { return replay_json(*shared); },
                      .junit = [shared] { return replay_cases(*shared); }};
  }

  std::vector<std::string> words_;
  std::vector<std::string> levels_;
  std::string policy_;
  std::string mode_;
};

}  // namespace

std::unique_ptr<Verb> make_replay() {
  return std::make_unique<ReplayVerb>();
}

}  // namespace zeroproof
