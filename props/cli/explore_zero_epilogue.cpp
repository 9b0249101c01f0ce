#include "props/cli/explore_zero_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "engine/files/atomic_file.h"
#include "props/cli/budget.h"
#include "props/cli/explore_watch.h"
#include "props/cli/finding_files.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/report/search_findings.h"
#include "props/zero_epilogue.h"

namespace zeroproof {
namespace {

double seconds_between(std::int64_t start_ns, std::int64_t end_ns) {
  return static_cast<double>(end_ns - start_ns) * 1e-9;
}

// DIR/zero_epilogue-A3.zpe, .svg and .html, one of each a falsified property.
Result<void> write_files(const ZeroEpilogueReport& report, const std::string& folder) {
  if (folder.empty()) return {};
  if (auto made = make_folder(folder); !made) return made;
  for (const ZeroEpilogueFinding& finding : report.findings) {
    const std::string path =
        fmt::format("{}/zero_epilogue-{}.zpe", folder, property_name(finding.property));
    if (auto written = write_file_atomically(path, finding.file); !written) return written;
    const std::string base = path.substr(0, path.rfind('.'));
    if (auto written = write_pictures(finding_picture(report, finding), base); !written) {
      return written;
    }
  }
  return {};
}

VerbResult result_of(ZeroEpilogueReport report, ExitCode code, const ZeroEpilogueTimes& seconds,
                     Session& session) {
  const auto shared = std::make_shared<ZeroEpilogueReport>(std::move(report));
  VerbResult result;
  result.code = code;
  result.text = [shared, seconds, code, &session] {
    return session.seed_line() + zero_epilogue_text(*shared, seconds) +
           session.reproduce_line(code);
  };
  result.json = [shared, seconds, &session] {
    return zero_epilogue_json(*shared, session.common.seed, seconds);
  };
  result.junit = [shared] { return zero_epilogue_cases(*shared); };
  result.findings = [shared] { return located_findings(*shared); };
  result.next = "explore hook_order --set P=2 --set N=6  # the engine itself, in every order";
  return result;
}

}  // namespace

void ZeroEpilogueExplore::declare(Flags& flags) {
  flags.add_switch("count-schedules", counts_schedules_,
                   "zero_epilogue: count schedules, and the chance of each violation");
  flags.add_switch("minimize-settings", minimizes_settings_,
                   "zero_epilogue: minimise P, N, B, K and the features of a finding too");
  flags.add_switch(
      "coverage", measures_coverage_,
      "zero_epilogue: count states, pair orders and probes that random schedules reach");
}

Result<VerbResult> ZeroEpilogueExplore::run(const ZeroEpilogueWords& words, Session& session) {
  ZeroEpilogueOptions options{.words = words.settings,
                              .scheduler = words.scheduler,
                              .is_reduced = !words.skips_reduction,
                              .counts_schedules = counts_schedules_,
                              .minimizes = words.minimizes,
                              .minimizes_settings = minimizes_settings_,
                              .measures_coverage = measures_coverage_,
                              .seed = session.common.seed};
  const auto workers = parse_count(words.workers, "explore: --workers");
  if (!workers) return tl::unexpected(workers.error());
  options.workers = std::clamp<std::uint64_t>(*workers, 1, 64);
  const auto budget = parse_budget(words.budget);
  if (!budget) return tl::unexpected(budget.error());
  if (budget->work.executions != Budget::kUnlimited) options.executions = budget->work.executions;
  ProgressLine progress(session.common.progress);
  ProgressView view{.task = "explore zero_epilogue", .strategy = words.scheduler, .unit = ""};
  const ExploreWatch watch = watch_for(progress, view, budget->time_ns);
  const std::int64_t start = now_ns();
  std::int64_t verdict = 0;
  options.on_verdict = [&] { verdict = now_ns(); };
  options.should_stop = [&] {
    progress.update([&] { return view; });
    return watch.should_stop();
  };
  auto report = explore_zero_epilogue(options);
  if (!report) return tl::unexpected(report.error());
  const std::int64_t end = now_ns();
  view.states = report->states;
  view.findings = report->findings.size();
  progress.finish(view);
  if (auto written = write_files(*report, session.common.out_dir); !written) {
    return tl::unexpected(written.error());
  }
  const ZeroEpilogueTimes seconds{seconds_between(start, verdict == 0 ? end : verdict),
                                  seconds_between(start, end)};
  const ExitCode code = exit_code_of(status_of(*report));
  return result_of(std::move(*report), code, seconds, session);
}

Result<VerbResult> ZeroEpilogueExplore::replay(const std::string& word, Session& session) {
  const std::int64_t start = now_ns();
  auto replay = replay_zero_epilogue(word);
  if (!replay) return tl::unexpected(replay.error());
  const double seconds = seconds_between(start, now_ns());
  const ExitCode code =
      replay->is_reproduced ? exit_code_of(status_of(replay->report)) : ExitCode::nondeterminism;
  return result_of(std::move(replay->report), code, {seconds, seconds}, session);
}

}  // namespace zeroproof
