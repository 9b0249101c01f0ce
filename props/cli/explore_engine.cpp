#include "props/cli/explore_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/files/atomic_file.h"
#include "props/cli/budget.h"
#include "props/cli/engine_picture.h"
#include "props/cli/environment.h"
#include "props/cli/explore_watch.h"
#include "props/cli/finding_files.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/shell_quote.h"
#include "props/report/search_findings.h"
#include "props/scenario.h"
#include "props/train/scenario.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kExecutions = 1000;  // of random and pct, without --budget
constexpr std::uint64_t kMostWorkers = 256;

double seconds_since(std::int64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

bool is_protocol_scenario(const std::string& word) {
  return std::ranges::any_of(builtin_scenarios(),
                             [&](const ScenarioFile& file) { return file.id == word; });
}

using Explorations = std::vector<TimedExploration>;

// BASE.svg and BASE.html of the minimised run; a run with faults has no picture.
Result<void> write_picture(const train::EngineFinding& finding, const std::string& base) {
  const LocatedFinding located = located_finding(finding.finding, finding.minimized);
  auto picture = engine_schedule_picture(finding.minimized, {located});
  if (!picture) {
    return picture.error().code == ErrorCode::cannot_run ? Result<void>{}
                                                         : tl::unexpected(picture.error());
  }
  picture->reproduce = "zeroproof " + located.reproduce;
  return write_pictures(*picture, base);
}

// DIR/explore.json, and for every finding DIR/SCENARIO-KIND.zps, .svg, .html and -min.zps; also of
// what was done by the time that the user interrupted.
Result<void> write_files(const Explorations& explorations, const Session& session) {
  const std::string& folder = session.common.out_dir;
  if (folder.empty()) return {};
  const std::string json = engine_exploration_json(explorations, session.common.seed) + "\n";
  if (auto written = write_file_atomically(folder + "/explore.json", json); !written)
    return written;
  for (const TimedExploration& one : explorations) {
    for (const train::EngineFinding& finding : one.report.findings) {
      const std::string base =
          fmt::format("{}/{}-{}", folder, finding.schedule.scenario, finding.finding.kind);
      if (auto written = write_schedule_file(finding.schedule, base + ".zps"); !written)
        return written;
      if (auto written = write_picture(finding, base); !written) return written;
      if (!one.report.options.minimizes) continue;
      if (auto written = write_schedule_file(finding.minimized, base + "-min.zps"); !written)
        return written;
    }
  }
  return {};
}

std::string page(const Explorations& explorations, ExitCode code, const Session& session) {
  std::string text = session.seed_line();
  for (const TimedExploration& one : explorations)
    text += engine_exploration_text(one, session.palette);
  for (const TimedExploration& one : explorations)
    for (const train::EngineFinding& finding : one.report.findings)
      return text + fmt::format("reproduce: {} replay {}\n", session.program,
                                shell_quote(schedule_text(finding.minimized)));
  return text + session.reproduce_line(code);
}

ExitCode worst_of(const Explorations& explorations) {
  ExplorationStatus worst =
      was_interrupted() ? ExplorationStatus::interrupted : ExplorationStatus::held;
  for (const TimedExploration& one : explorations) worst = std::max(worst, status_of(one.report));
  return exit_code_of(worst);
}

}  // namespace

void EngineExplore::declare(Flags& flags) {
  flags.add_value(
      "level", level_,
      {"LEVEL",
       "protocol: hooks alone; engine: the whole engine (default for scenarios of train); "
       "program: drawn programs, or those of files",
       {"protocol", "engine", "program"}});
  flags.begin_group("scenarios of train, and --level engine or program");
  flags.add_value("stage", stage_, {"N", "ZeRO stage (default 2)", {"0", "1", "2", "3"}});
  flags.add_value("world-size", world_size_, {"N", "ranks (default 2)"});
  flags.add_value(
      "dtype", dtype_,
      {"DTYPE", "precision (default float32)", {"float32", "bf16", "fp16", "autocast"}});
  flags.add_value("backward", backward_,
                  {"WHO", "engine.backward (default) or tensor.backward", {"engine", "tensor"}});
  flags.add_value("data", data_, {"MODE", "exact (default) or real", {"exact", "real"}});
  flags.add_value("steps", steps_, {"N", "optimizer steps (default 3)"});
  flags.add_value(
      "quirks", quirks_,
      {"LIST", "hazards of DeepSpeed to switch on: h3,n5, or those of deepspeed-0.19.8"});
  flags.add_value("autograd-api", api_,
                  {"API",
                   "functions that the autograd offers (default full)",
                   {"full", "none", "no_callback"}});
  flags.add_value("ds-config", config_path_,
                  {"FILE", "a ds_config.json in place of the built-in configuration"});
  flags.add_value(
      "preemption", preemption_,
      {"WHERE",
       "a rank gives way at every-call (default), or where it waits (blocked); ranks is "
       "blocked with queued work at once, enough for --judge streams",
       {"blocked", "every-call", "ranks"}});
  flags.add_value(
      "compute", compute_,
      {"WHEN",
       "work on the compute stream runs in step with its rank (in-step, default) or late",
       {"in-step", "late"}});
  flags.add_value("nodes", nodes_,
                  {"ORDER",
                   "order of autograd nodes: faithful to PyTorch (default), any order that all "
                   "ranks share, or another on each rank",
                   {"faithful", "shared", "each"}});
  flags.add_value(
      "judge", judge_,
      {"BY",
       "values (default): ranks and baseline agree. events: properties. streams: values and the "
       "order of streams. host, cuda: values, also those of a run on host threads or GPUs",
       {"values", "events", "host", "streams", "cuda"}});
  flags.add_value("faults", faults_,
                  {"KINDS",
                   "faults to inject: all, or some of exception, abort, timeout, allocation, "
                   "overflow, skipped_step, hook_removal, destroy"});
  flags.add_value("faults-max", faults_max_, {"N", "faults of one execution at most (default 1)"});
  flags.add_value(
      "shards", shards_,
      {"N", "deal the executions out to N machines (default: ranks of torchrun, mpirun, srun)"});
  flags.add_value("shard-index", shard_, {"I", "number of this machine, from 0"});
  flags.add_switch("twice", runs_twice_, "run every execution twice and compare");
}

bool EngineExplore::is_meant(const std::vector<std::string>& scenarios) const {
  if (!level_.empty()) return level_ == "engine";
  return !scenarios.empty() && std::ranges::all_of(scenarios, [](const std::string& word) {
    return !is_protocol_scenario(word) && train::find_scenario(word).has_value();
  });
}

train::CaseSettings EngineExplore::settings(const ExploreWords& words) const {
  train::CaseSettings settings;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) settings[key] = value;
  };
  add("stage", stage_);
  add("world-size", world_size_);
  add("dtype", dtype_);
  add("backward", backward_);
  add("data", data_);
  add("steps", steps_);
  add("policy", words.policy);
  add("quirks", quirks_);
  add("autograd-api", api_);
  add("ds-config", config_path_);
  add("preemption", preemption_);
  add("compute", compute_);
  add("nodes", nodes_);
  add("judge", judge_);
  add("faults", faults_);
  add("faults-max", faults_max_);
  return settings;
}

// Flags win, then what a launcher says.
Result<void> EngineExplore::deal(const ExploreWords& words,
                                 train::EngineExplorationOptions& options) const {
  const auto workers = parse_count(words.workers, "explore: --workers");
  if (!workers) return tl::unexpected(workers.error());
  options.workers = std::clamp<std::uint64_t>(*workers, 1, kMostWorkers);
  if (shards_.empty() && !shard_.empty())
    return fail(ErrorCode::usage, "explore: --shard-index needs --shards");
  if (shards_.empty()) {
    const auto launch = read_launch(environment());
    if (!launch) return fail(launch.error().code, "explore: " + launch.error().text);
    if (!*launch) return {};
    options.shards = static_cast<std::uint64_t>((*launch)->size);
    options.shard = static_cast<std::uint64_t>((*launch)->rank);
    return {};
  }
  const auto index = parse_count(shard_.empty() ? "0" : shard_, "explore: --shard-index");
  if (!index) return tl::unexpected(index.error());
  const auto shards = parse_count(shards_, "explore: --shards");
  if (!shards) return tl::unexpected(shards.error());
  if (*shards == 0 || *index >= *shards)
    return fail(ErrorCode::usage, fmt::format("explore: --shard-index {} of --shards {}: give 0 to "
                                              "one less than the shards",
                                              *index, *shards));
  options.shards = *shards;
  options.shard = *index;
  return {};
}

Result<std::vector<train::EngineExplorationOptions>> EngineExplore::plan(const ExploreWords& words,
                                                                         std::uint64_t seed) {
  train::EngineExplorationOptions base;
  if (!words.scheduler.empty()) base.scheduler = words.scheduler;
  base.seed = seed;
  base.runs_twice = runs_twice_;
  base.minimizes = words.minimizes;
  if (auto dealt = deal(words, base); !dealt) return tl::unexpected(dealt.error());
  const auto budget = parse_budget(words.budget);
  if (!budget) return tl::unexpected(budget.error());
  time_ns_ = budget->time_ns;
  base.budget = budget->work;
  const bool is_sampling = base.scheduler == "random" || base.scheduler.starts_with("pct");
  if (is_sampling && words.budget.empty()) base.budget.executions = kExecutions;
  std::vector<train::EngineExplorationOptions> jobs;
  const auto add = [&](const std::string& scenario) -> Result<void> {
    auto engine_case = train::case_of(scenario, settings(words), "explore");
    if (!engine_case) return tl::unexpected(engine_case.error());
    jobs.push_back(base);
    jobs.back().engine_case = std::move(*engine_case);
    // One after another: communicators of each would be more than GPUs hold.
    jobs.back().engine_case.cell.gpus = jobs.front().engine_case.cell.gpus;
    return {};
  };
  for (const std::string& word : words.scenarios) {
    if (word != "all") {
      if (auto added = add(word); !added) return tl::unexpected(added.error());
      continue;
    }
    for (const train::TrainScenario& scenario : train::scenario_catalogue()) {
      if (auto added = add(std::string(scenario.name)); !added)
        return tl::unexpected(added.error());
      if (!train::is_applicable(scenario, jobs.back().engine_case.cell)) jobs.pop_back();
    }
  }
  return jobs;
}

Result<VerbResult> EngineExplore::run(const ExploreWords& words, Session& session) {
  const auto jobs = plan(words, session.common.seed);
  if (!jobs) return tl::unexpected(jobs.error());
  if (jobs->empty()) return fail(ErrorCode::usage, "explore: name a scenario");
  if (!session.common.out_dir.empty())
    if (auto made = make_folder(session.common.out_dir); !made) return tl::unexpected(made.error());
  const auto explorations = std::make_shared<Explorations>();
  ProgressLine progress(session.common.progress);
  ProgressView view;
  for (const train::EngineExplorationOptions& job : *jobs) {
    if (was_interrupted()) break;
    view = {.task = "explore " + job.engine_case.cell.scenario, .strategy = job.scheduler};
    if (job.budget.executions != Budget::kUnlimited) view.runs_max = job.budget.executions;
    const std::int64_t start = now_ns();
    auto report = train::explore_engine(job, engine_watch_for(progress, view, time_ns_));
    if (!report) return tl::unexpected(report.error());
    explorations->push_back({std::move(*report), seconds_since(start)});
  }
  progress.finish(view);
  if (auto written = write_files(*explorations, session); !written)
    return tl::unexpected(written.error());
  const ExitCode code = worst_of(*explorations);
  VerbResult result;
  result.code = code;
  result.text = [explorations, code, &session] { return page(*explorations, code, session); };
  result.json = [explorations, &session] {
    return engine_exploration_json(*explorations, session.common.seed);
  };
  result.junit = [explorations] { return engine_exploration_cases(*explorations); };
  result.findings = [explorations] { return located_findings(*explorations); };
  return result;
}

}  // namespace zeroproof
