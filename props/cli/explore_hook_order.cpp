#include "props/cli/explore_hook_order.h"

#include <fmt/format.h>

#include <memory>

#include "props/cli/budget.h"
#include "props/cli/explore_watch.h"
#include "props/cli/finding_files.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/shell_quote.h"
#include "props/hook_order.h"
#include "props/report/search_findings.h"

namespace zeroproof {
namespace {

ExitCode exit_code_of(const HookOrderReport& report) {
  if (!report.divergence.empty()) return ExitCode::nondeterminism;
  if (!report.findings.empty()) return ExitCode::falsified;
  if (was_interrupted()) return ExitCode::interrupted;
  const bool is_whole = report.scheduler != "exhaustive" || report.has_exhausted;
  return is_whole ? ExitCode::held : ExitCode::time_limit;
}

// DIR/hook_order-A3.svg and .html, one of each a falsified property.
Result<void> write_files(const HookOrderReport& report, const std::string& folder) {
  if (folder.empty()) return {};
  if (auto made = make_folder(folder); !made) return made;
  for (const HookOrderFinding& finding : report.findings) {
    const std::string base =
        fmt::format("{}/hook_order-{}", folder, property_name(finding.property));
    if (auto written = write_pictures(finding_picture(report, finding), base); !written) {
      return written;
    }
  }
  return {};
}

}  // namespace

Result<VerbResult> run_hook_order(const HookOrderFlags& flags, Session& session) {
  const auto budget = parse_budget(flags.budget);
  if (!budget) return tl::unexpected(budget.error());
  ProgressLine progress(session.common.progress);
  ProgressView view{.task = "explore hook_order", .strategy = flags.scheduler};
  const ExploreWatch watch = watch_for(progress, view, budget->time_ns);
  HookOrderOptions options{.words = flags.settings,
                           .scheduler = flags.scheduler,
                           .is_reduced = !flags.skips_reduction,
                           .seed = session.common.seed,
                           .should_stop = watch.should_stop,
                           .on_progress = watch.on_progress};
  if (budget->work.executions != Budget::kUnlimited) options.executions = budget->work.executions;
  if (flags.scheduler != "exhaustive") view.runs_max = options.executions;
  const std::int64_t start = now_ns();
  auto report = explore_hook_order(options);
  if (!report) return tl::unexpected(report.error());
  const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
  view.runs = report->executions;
  view.states = report->states;
  view.findings = report->findings.size();
  progress.finish(view);
  if (auto written = write_files(*report, session.common.out_dir); !written) {
    return tl::unexpected(written.error());
  }
  const auto shared = std::make_shared<HookOrderReport>(std::move(*report));
  return VerbResult{
      .code = exit_code_of(*shared),
      .text = [shared, seconds,
               &session] { return session.seed_line() + hook_order_text(*shared, seconds); },
      .json = [shared, seconds,
               &session] { return hook_order_json(*shared, session.common.seed, seconds); },
      .findings = [shared] { return located_findings(*shared); },
      .next = flags.scheduler == "exhaustive"
                  ? "explore plain --stage 2 --budget 30s  # whole training steps"
                  : fmt::format("explore hook_order{} --scheduler exhaustive  # every order",
                                setting_words(flags.settings))};
}

}  // namespace zeroproof
