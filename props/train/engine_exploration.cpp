#include "props/train/engine_exploration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "model/check.h"
#include "props/train/case_minimizer.h"
#include "props/train/exploration_worker.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::train {
namespace {

// How far every worker is; the first one reports it to the caller.
class SharedProgress {
 public:
  explicit SharedProgress(std::size_t workers) : executions_(workers), findings_(workers) {}

  void note(std::size_t worker, const ExploreProgress& at) {
    executions_[worker].store(at.executions, std::memory_order_relaxed);
    findings_[worker].store(at.findings, std::memory_order_relaxed);
  }

  EngineProgress total(const ExploreProgress& first, std::uint64_t classes) const {
    EngineProgress all{.deepest = first.deepest, .classes = classes, .own = first.executions};
    for (const auto& count : executions_) all.executions += count.load(std::memory_order_relaxed);
    for (const auto& count : findings_)
      all.findings = std::max(all.findings, count.load(std::memory_order_relaxed));
    return all;
  }

 private:
  std::vector<std::atomic<std::uint64_t>> executions_;
  std::vector<std::atomic<std::uint64_t>> findings_;
};

class EngineExplorer {
 public:
  EngineExplorer(const EngineExplorationOptions& options, const EngineWatch& watch)
      : options_(options), watch_(watch), progress_(options.workers) {}

  EngineExplorationReport run(const CaseRunner& runner) {
    std::vector<std::unique_ptr<Scheduler>> schedulers;
    std::vector<std::unique_ptr<ExplorationWorker>> workers;
    for (std::uint64_t worker = 0; worker < options_.workers; ++worker) {
      const Deal deal{.first = options_.shard + options_.shards * worker,
                      .stride = options_.shards * options_.workers};
      schedulers.push_back(*make_scheduler(options_.scheduler, options_.seed));
      workers.push_back(std::make_unique<ExplorationWorker>(options_, runner, deal));
    }
    std::vector<ExplorationPart> parts(workers.size());
    std::vector<std::exception_ptr> errors(workers.size());
    const auto run_worker = [&](std::size_t number) {
      try {
        parts[number] =
            workers[number]->run(*schedulers[number], watch_of(number, *workers[number]));
      } catch (...) {
        errors[number] = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> threads;
      for (std::size_t number = 1; number < workers.size(); ++number)
        threads.emplace_back(run_worker, number);
      run_worker(0);
    }
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
    for (std::size_t number = 1; number < parts.size(); ++number) parts[0].add(parts[number]);
    return report_of(parts[0], runner);
  }

 private:
  ExploreWatch watch_of(std::size_t number, const ExplorationWorker& worker) {
    ExploreWatch watch;
    watch.should_stop = watch_.should_stop;
    watch.on_progress = [this, number, &worker](const ExploreProgress& at) {
      progress_.note(number, at);
      if (number == 0 && watch_.on_progress)
        watch_.on_progress(progress_.total(at, worker.classes()));
    };
    return watch;
  }

  EngineExplorationReport report_of(const ExplorationPart& all, const CaseRunner& runner) const {
    EngineExplorationReport report;
    report.options = options_;
    report.end = all.end;
    report.divergence = all.divergence;
    report.refusal = all.refusal;
    report.executions = all.executions;
    report.events = all.events;
    report.choices = all.choices;
    report.deepest = all.deepest;
    report.results = all.coverage.results();
    report.ends = all.coverage.ends();
    report.classes = all.coverage.classes();
    report.has_exhausted = all.scheduler.has_exhausted;
    report.states = all.scheduler.states;
    report.transitions = all.scheduler.transitions;
    report.certificate = all.certificate;
    report.sites = all.coverage.sites();
    report.sometimes = all.coverage.sometimes(all.required);
    CaseRunner again = runner;
    for (const auto& [kind, found] : all.found)
      report.findings.push_back(finding_of(kind, found, again));
    std::ranges::stable_sort(report.findings, {}, &EngineFinding::first_execution);
    return report;
  }

  EngineFinding finding_of(const std::string& kind, const FoundKind& found,
                           CaseRunner& runner) const {
    const EngineCase& engine_case = options_.engine_case;
    EngineFinding finding;
    finding.failing_executions = found.failing_executions;
    finding.first_execution = found.first_execution;
    finding.events_before = found.shortest.events;
    ReplayScheduler replay(found.shortest.choices);
    CaseRun run = runner.run(replay);
    finding.schedule =
        schedule_of(engine_case, options_.seed, found.shortest.choices, run.findings);
    finding.minimized = finding.schedule;
    if (options_.minimizes) {
      const auto should_stop = [&] {
        return watch_.should_stop && watch_.should_stop() == StopRequest::interrupted;
      };
      FailingCase smaller = minimize_case(engine_case, found.shortest.choices, kind, should_stop);
      run = std::move(smaller.run);
      finding.minimized =
          schedule_of(smaller.engine_case, options_.seed, std::move(smaller.choices), run.findings);
      finding.runs = smaller.runs;
      finding.is_minimal = smaller.is_minimal;
    }
    const CaseFinding* const shown = find_kind(run, kind);
    ZP_CHECK(shown, "a finding shows again when its schedule is replayed");
    finding.finding = *shown;
    finding.events = shown->step;
    const Choices& choices = finding.minimized.choices;
    finding.decisions = choices.size() - static_cast<std::size_t>(std::ranges::count(choices, 0U));
    return finding;
  }

  const EngineExplorationOptions& options_;
  const EngineWatch& watch_;
  SharedProgress progress_;
};

}  // namespace

Result<EngineExplorationReport> explore_engine(const EngineExplorationOptions& options,
                                               const EngineWatch& watch) {
  const auto scheduler = make_scheduler(options.scheduler, options.seed);
  if (!scheduler) return tl::unexpected(scheduler.error());
  const bool is_dealt = options.workers > 1 || options.shards > 1;
  if (is_dealt && options.scheduler != "random")
    return fail(ErrorCode::usage,
                fmt::format("explore: --workers and --shards need --scheduler random: the "
                            "executions of {} depend on those before",
                            options.scheduler));
  const auto runner = CaseRunner::create(options.engine_case);
  if (!runner) return tl::unexpected(runner.error());
  return EngineExplorer(options, watch).run(*runner);
}

std::string found_word(const std::vector<CaseFinding>& found) {
  std::vector<std::string> kinds;
  for (const CaseFinding& finding : found) kinds.push_back(finding.kind);
  std::ranges::sort(kinds);
  return kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, "+"));
}

Schedule schedule_of(const EngineCase& engine_case, std::uint64_t seed, Choices choices,
                     const std::vector<CaseFinding>& found) {
  Schedule schedule{.scenario = engine_case.cell.scenario,
                    .settings = settings_of(engine_case),
                    .seed = seed,
                    .choices = std::move(choices)};
  schedule.settings["found"] = found_word(found);
  return schedule;
}

}  // namespace zeroproof::train
