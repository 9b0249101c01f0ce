// `zeroproof explore`: the legal hook orders of scenarios under policies.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/nearest_name.h"
#include "props/cli/budget.h"
#include "props/cli/explore_engine.h"
#include "props/cli/explore_hook_order.h"
#include "props/cli/explore_program.h"
#include "props/cli/explore_watch.h"
#include "props/cli/explore_zero_epilogue.h"
#include "props/cli/finding_files.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/policy_command_flag.h"
#include "props/cli/policy_flag.h"
#include "props/cli/shell_quote.h"
#include "props/cli/verb.h"
#include "props/exploration_status.h"
#include "props/replay/schedule_replay.h"
#include "props/report/explore_junit.h"
#include "props/report/explore_text.h"
#include "props/report/json.h"
#include "props/report/replay_findings.h"
#include "props/report/run_trace.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kRandomExecutions = 10'000;         // without --budget
constexpr std::string_view kFormerOrderModel = "latitude";  // the flag's name until 0.2

class ExploreVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(scenarios_,
                    {"SCENARIO",
                     "ids of 'zeroproof list scenarios', *.json files, scenarios of train, or "
                     "all"});
    add_policy_flag(flags, policy_, "hook policy (default exact), or all", true);
    command_.declare(flags);
    flags.add_value("mode", mode_,
                    {"MODE",
                     "graph_task_callback (default) or count_fallback",
                     {"graph_task_callback", "count_fallback"}});
    flags.add_value("order-model", order_model_,
                    {"MODEL",
                     "any_topological (default), or faithful: PyTorch's order",
                     {"any_topological", "faithful"}});
    flags.add_former_name("order-model", kFormerOrderModel);
    flags.add_value(
        "scheduler", scheduler_,
        {"NAME",
         "exhaustive (default), random, fifo or replay:FILE. Scenarios of train: random "
         "(default), pct:D. zero_epilogue: dpor, pct:D, novelty, replay:TOKEN too"});
    flags.add_value(
        "budget", budget_,
        {"LIMITS",
         "time (60s, 5m), executions (10000x), steps (100Mstep), or several with commas"});
    flags.add_list("set", settings_,
                   {"NAME=VALUE",
                    "a scenario: N, parameters, a multiple of 4 (default 4). zero_epilogue: P, N, "
                    "B, K, W, N1, order, late, defect. hook_order: P, N, B, K, E, stage, order, "
                    "overlap, quirks, defect (docs/explanation/how_orders_are_explored.md)"});
    flags.add_value("workers", workers_,
                    {"N", "threads for scenarios of train and zero_epilogue (default 1)"});
    flags.add_switch("no-minimize", skips_minimizing_, "report findings as they were found");
    flags.add_value("trace-out", trace_path_, {"FILE", "write the first finding's run as a trace"});
    engine_.declare(flags);
    flags.begin_group("zero_epilogue and hook_order");
    flags.add_switch("no-reduction", skips_reduction_, "search the full space");
    common_model_.declare(flags);
  }

  Result<VerbResult> run(Session& session) override {
    if (command_.is_given()) return run_command(session);
    if (engine_.is_of_programs())
      return explore_programs(
          {scenarios_, policy_, scheduler_, budget_, workers_, !skips_minimizing_}, engine_.judge(),
          session);
    if (!is_model() && engine_.is_meant(scenarios_))
      return engine_.run({scenarios_, policy_, scheduler_, budget_, workers_, !skips_minimizing_},
                         session);
    if (is_of("zero_epilogue"))
      return common_model_.run({settings_, scheduler_.empty() ? "exhaustive" : scheduler_, budget_,
                                workers_, !skips_minimizing_, skips_reduction_},
                               session);
    if (is_of("hook_order"))
      return run_hook_order(
          {settings_, scheduler_.empty() ? "exhaustive" : scheduler_, budget_, skips_reduction_},
          session);
    return explore_scenarios(session);
  }

 private:
  bool is_of(const char* model) const { return scenarios_ == std::vector<std::string>{model}; }
  bool is_model() const { return is_of("zero_epilogue") || is_of("hook_order"); }

  Result<VerbResult> run_command(Session& session) {
    const bool is_elsewhere =
        is_model() || engine_.is_of_programs() || engine_.is_meant(scenarios_);
    if (is_elsewhere || policy_ != "exact")
      return fail(ErrorCode::usage,
                  "explore: --policy-command is the policy of scenarios of 'list scenarios': leave "
                  "out --policy and --level");
    if (auto started = command_.start(); !started) return tl::unexpected(started.error());
    return explore_scenarios(session);
  }

  Result<VerbResult> explore_scenarios(Session& session) {
    if (scheduler_.empty()) scheduler_ = "exhaustive";
    auto jobs = plan(session.common.seed);
    if (!jobs) return tl::unexpected(jobs.error());
    if (!session.common.out_dir.empty()) {
      if (auto made = make_folder(session.common.out_dir); !made)
        return tl::unexpected(made.error());
    }
    const auto reports = std::make_shared<std::vector<ExplorationReport>>();
    ProgressLine progress(session.common.progress);
    ProgressView view;
    for (const ExplorationOptions& job : *jobs) {
      if (was_interrupted()) break;
      auto report = explore_one(job, progress, view);
      if (!report && was_interrupted()) break;
      if (!report) return tl::unexpected(report.error());
      reports->push_back(std::move(*report));
    }
    if (jobs->size() > 1) view = {.task = fmt::format("explore: {} explorations", reports->size())};
    progress.finish(view);
    if (auto written = write_files(*reports, session); !written) {
      return tl::unexpected(written.error());
    }
    return result_of(reports, session);
  }

  Result<std::vector<ExplorationOptions>> plan(std::uint64_t seed) {
    if (scenarios_.empty()) {
      return fail(ErrorCode::usage,
                  "explore: name a scenario; 'zeroproof list scenarios' has them");
    }
    ExplorationOptions base{.scheduler = scheduler_, .seed = seed};
    base.mode = *policy_mode_of(mode_);
    base.order_model = *order_model_of(order_model_);
    if (auto set = read_settings(base); !set) return tl::unexpected(set.error());
    const auto budget = parse_budget(budget_);
    if (!budget) return tl::unexpected(budget.error());
    time_ns_ = budget->time_ns;
    base.budget = budget->work;
    if (scheduler_ == "random" && budget_.empty()) base.budget.executions = kRandomExecutions;
    if (command_.is_given()) return jobs_of_command(base);
    std::vector<ExplorationOptions> jobs;
    for (const std::string& scenario : scenario_ids()) {
      for (const PolicyInfo& policy : policy_catalogue()) {
        if (policy_ != "all" && policy_ != policy.id) continue;
        const bool is_possible = base.mode == PolicyMode::graph_task_callback || policy.can_count;
        if (policy_ == "all" && !is_possible) continue;
        jobs.push_back(base);
        jobs.back().scenario = scenario;
        jobs.back().policy = policy.id;
      }
    }
    for (ExplorationOptions& job : jobs) job.minimizes = !skips_minimizing_ && jobs.size() == 1;
    return jobs;
  }

  std::vector<ExplorationOptions> jobs_of_command(ExplorationOptions base) const {
    base.policy = command_.policy();
    base.make_policy = command_.make_policy();
    base.minimizes = !skips_minimizing_ && scenario_ids().size() == 1;
    std::vector<ExplorationOptions> jobs;
    for (const std::string& scenario : scenario_ids()) {
      jobs.push_back(base);
      jobs.back().scenario = scenario;
    }
    return jobs;
  }

  std::vector<std::string> scenario_ids() const {
    std::vector<std::string> ids;
    for (const std::string& word : scenarios_) {
      if (word != "all") {
        ids.push_back(word);
        continue;
      }
      for (const ScenarioFile& file : builtin_scenarios()) ids.emplace_back(file.id);
    }
    return ids;
  }

  Result<void> read_settings(ExplorationOptions& options) const {
    for (const std::string& setting : settings_) {
      const std::size_t equals = std::min(setting.find('='), setting.size());
      const std::string key = setting.substr(0, equals);
      if (key != "N" || equals == setting.size()) {
        constexpr std::array<std::string_view, 1> kKeys = {"N"};
        return fail(ErrorCode::usage, fmt::format("explore: --set: unknown setting '{}': {}",
                                                  setting, did_you_mean(key, kKeys)));
      }
      const auto count = parse_count(setting.substr(equals + 1), "explore: --set N");
      if (!count) return tl::unexpected(count.error());
      options.params = static_cast<std::uint32_t>(std::min<std::uint64_t>(*count, 1U << 20));
    }
    return {};
  }

  Result<ExplorationReport> explore_one(const ExplorationOptions& job, ProgressLine& progress,
                                        ProgressView& view) {
    view.task = fmt::format("explore {} {}", job.scenario, job.policy);
    view.strategy = job.scheduler;
    if (job.budget.executions != Budget::kUnlimited) view.runs_max = job.budget.executions;
    auto report = explore_scenario(job, watch_for(progress, view, time_ns_));
    if (!report) return report;
    report->policy_exception = command_.take_exception();
    return promise_verdicts(std::move(*report));
  }

  // Every schedule that is handed out says what its run falsified.
  static Result<ExplorationReport> promise_verdicts(ExplorationReport report) {
    for (ExplorationFinding& finding : report.findings) {
      const auto run = run_schedule(finding.schedule, report.options.make_policy);
      if (!run) return tl::unexpected(run.error());
      finding.schedule = expecting(std::move(finding.schedule), run->verdicts);
    }
    return report;
  }

  Result<void> write_files(const std::vector<ExplorationReport>& reports, const Session& session) {
    if (!session.common.out_dir.empty()) {
      for (const ExplorationReport& report : reports) {
        auto written = write_finding_files(report, session.common.out_dir);
        if (!written) return written;
      }
    }
    return trace_path_.empty() || reports.empty() ? Result<void>{} : write_trace(reports);
  }

  // Without a finding: the run in PyTorch's order.
  Result<void> write_trace(const std::vector<ExplorationReport>& reports) {
    const auto found =
        std::find_if(reports.begin(), reports.end(),
                     [](const ExplorationReport& report) { return !report.findings.empty(); });
    Schedule schedule;
    if (found != reports.end()) {
      schedule = found->findings.front().schedule;
      schedule.settings.erase("falsified");
    } else {
      const ExplorationOptions& options = reports.front().options;
      schedule = {.scenario = options.scenario,
                  .settings = {{"policy", options.policy},
                               {"mode", std::string(policy_mode_name(options.mode))},
                               {"order_model", "faithful"},
                               {"N", std::to_string(options.params)}}};
    }
    const auto run = run_schedule(schedule, command_.make_policy());
    if (!run) return tl::unexpected(run.error());
    const auto options = options_of(schedule);
    if (!options) return tl::unexpected(options.error());
    const auto scenario = load_scenario(schedule.scenario);
    if (!scenario) return tl::unexpected(scenario.error());
    return write_run_trace(schedule, widen(*scenario, options->params / 4), *run, trace_path_);
  }

  Result<VerbResult> result_of(const std::shared_ptr<std::vector<ExplorationReport>>& reports,
                               Session& session) {
    ExplorationStatus worst =
        was_interrupted() ? ExplorationStatus::interrupted : ExplorationStatus::held;
    for (const ExplorationReport& report : *reports) worst = std::max(worst, status_of(report));
    return VerbResult{
        .code = exit_code_of(worst),
        .text = [this, reports, &session] { return page(*reports, session, command_.words()); },
        .json = [reports, &session] { return explore_json(*reports, session.common.seed); },
        .junit = [reports] { return explore_cases(*reports); },
        .findings =
            [this, reports] {
              LocatedFindings findings = located_findings(*reports);
              for (LocatedFinding& one : findings) one.reproduce += command_.words();
              return findings;
            },
        .next = next_of(*reports)};
  }

  // What an exploration that held leaves open: other orders, other policies, other scenarios.
  std::string next_of(const std::vector<ExplorationReport>& reports) const {
    if (reports.empty()) return {};
    const ExplorationOptions& first = reports.front().options;
    const std::string policy = command_.is_given() ? command_.words() : " --policy " + policy_;
    if (scheduler_ != "exhaustive")
      return fmt::format("explore {}{} --scheduler exhaustive  # every order",
                         shell_quote(first.scenario), policy);
    if (reports.size() > 1)
      return fmt::format("explore all{} --set N={}  # with more parameters", policy,
                         2 * first.params);
    if (command_.is_given() || policy_ != "exact")
      return fmt::format("explore all{}  # every scenario", policy);
    return fmt::format("explore {} --policy all  # the policies of DeepSpeed's releases",
                       shell_quote(first.scenario));
  }

  static std::string page(const std::vector<ExplorationReport>& reports, const Session& session,
                          const std::string& command) {
    const PageStyle style{session.terminal.columns, session.palette};
    std::string text = session.seed_line();
    if (reports.size() == 1) text += explore_text(reports.front(), style);
    if (reports.size() > 1) text += explore_table(reports, style);
    for (const ExplorationReport& report : reports) {
      if (report.findings.empty()) continue;
      return text + fmt::format("reproduce: {} replay {}{}\n", session.program,
                                shell_quote(schedule_text(report.findings.front().schedule)),
                                command);
    }
    return text;
  }

  std::vector<std::string> scenarios_;
  std::vector<std::string> settings_;
  std::string policy_ = "exact";
  std::string mode_ = "graph_task_callback";
  std::string order_model_ = "any_topological";
  std::string scheduler_;  // empty: each level has its own
  std::string budget_;
  std::string trace_path_;
  bool skips_minimizing_ = false;
  bool skips_reduction_ = false;
  std::string workers_ = "1";
  std::optional<std::int64_t> time_ns_;
  PolicyCommandFlag command_;
  EngineExplore engine_;
  ZeroEpilogueExplore common_model_;
};

}  // namespace

std::unique_ptr<Verb> make_explore() {
  return std::make_unique<ExploreVerb>();
}

}  // namespace zeroproof
