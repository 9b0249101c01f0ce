#include "props/train/engine_exploration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "model/check.h"
#include "props/train/case_minimizer.h"
#include "sim/schedulers/replay.h"
#include "sim/schedulers/twice.h"

namespace zeroproof::train {
namespace {

// Counts what another chooser decides.
class SiteCounter final : public Chooser {
 public:
  SiteCounter(Chooser& inner, std::map<std::string, SiteCount, std::less<>>& sites)
      : inner_(inner), sites_(sites) {}

  std::size_t choose(const ChoicePoint& at) override {
    const std::size_t taken = inner_.choose(at);
    if (at.options.size() < 2) return taken;
    auto site = sites_.find(at.site);
    if (site == sites_.end()) {
      site = sites_.try_emplace(std::string(at.site)).first;
      site->second.site = at.site;
    }
    SiteCount& count = site->second;
    ++count.choices;
    count.widest = std::max<std::uint64_t>(count.widest, at.options.size());
    if (count.taken.size() < kNamesMax) count.taken.emplace(at.options[taken]);
    return taken;
  }

 private:
  static constexpr std::size_t kNamesMax = 4096;
  Chooser& inner_;
  std::map<std::string, SiteCount, std::less<>>& sites_;
};

class EngineExplorer {
 public:
  EngineExplorer(const EngineExplorationOptions& options, CaseRunner runner)
      : runner_(std::move(runner)) {
    report_.options = options;
  }

  EngineExplorationReport run(Scheduler& scheduler, const ExploreWatch& watch) {
    TwiceScheduler twice(scheduler);
    Scheduler& used = report_.options.runs_twice ? static_cast<Scheduler&>(twice) : scheduler;
    const auto execute = [&](Chooser& chooser) { return execute_once(chooser); };
    const ExploreResult result = explore(execute, used, report_.options.budget, watch);
    summarize(result);
    if (const auto* pct = dynamic_cast<const PctScheduler*>(&scheduler))
      report_.certificate = pct->certificate();
    for (const FailingProperty& failing : result.findings) add_finding(failing, watch);
    std::ranges::sort(report_.findings, {}, &EngineFinding::first_execution);
    return std::move(report_);
  }

 private:
  Outcome execute_once(Chooser& chooser) {
    SiteCounter counter(chooser, sites_);
    const CaseRun run = runner_.run(counter);
    report_.events += run.steps;
    if (run.status == CellStatus::refused) report_.refusal = run.refusal;
    results_.insert(run.result);
    ends_.insert(run.state);
    Outcome outcome;
    outcome.final_state = run.state;
    for (const CaseFinding& finding : run.findings)
      outcome.falsified.push_back({.property = index_of(finding.kind), .events = finding.step});
    return outcome;
  }

  std::uint32_t index_of(const std::string& kind) {
    const auto at = std::ranges::find(kinds_, kind);
    if (at == kinds_.end()) {
      kinds_.push_back(kind);
      return static_cast<std::uint32_t>(kinds_.size() - 1);
    }
    return static_cast<std::uint32_t>(at - kinds_.begin());
  }

  void summarize(const ExploreResult& result) {
    report_.end = result.end;
    report_.divergence = result.divergence;
    report_.executions = result.executions;
    report_.choices = result.progress.steps;
    report_.deepest = result.progress.deepest;
    report_.results = results_.size();
    report_.ends = ends_.size();
    report_.has_exhausted = result.has_covered_every_order();
    report_.states = result.progress.scheduler.states;
    report_.transitions = result.progress.scheduler.transitions;
    for (const auto& [name, count] : sites_) report_.sites.push_back(count);
  }

  void add_finding(const FailingProperty& failing, const ExploreWatch& watch) {
    const EngineCase& engine_case = report_.options.engine_case;
    const std::uint64_t seed = report_.options.seed;
    const std::string& kind = kinds_[failing.property];
    EngineFinding finding;
    finding.failing_executions = failing.failing_executions;
    finding.first_execution = failing.first.execution;
    finding.events_before = failing.shortest.events;
    ReplayScheduler replay(failing.shortest.choices);
    CaseRun run = runner_.run(replay);
    finding.schedule = schedule_of(engine_case, seed, failing.shortest.choices, run.findings);
    finding.minimized = finding.schedule;
    if (report_.options.minimizes) {
      const auto should_stop = [&] {
        return watch.should_stop && watch.should_stop() == StopRequest::interrupted;
      };
      FailingCase smaller = minimize_case(engine_case, failing.shortest.choices, kind, should_stop);
      run = std::move(smaller.run);
      finding.minimized =
          schedule_of(smaller.engine_case, seed, std::move(smaller.choices), run.findings);
      finding.runs = smaller.runs;
      finding.is_minimal = smaller.is_minimal;
    }
    const CaseFinding* const shown = find_kind(run, kind);
    ZP_CHECK(shown, "a finding shows again when its schedule is replayed");
    finding.finding = *shown;
    finding.events = shown->step;
    const Choices& choices = finding.minimized.choices;
    finding.decisions = choices.size() - static_cast<std::size_t>(std::ranges::count(choices, 0U));
    report_.findings.push_back(std::move(finding));
  }

  CaseRunner runner_;
  EngineExplorationReport report_;
  std::vector<std::string> kinds_;
  std::map<std::string, SiteCount, std::less<>> sites_;
  std::set<Fingerprint> results_;
  std::set<Fingerprint> ends_;
};

}  // namespace

Result<EngineExplorationReport> explore_engine(const EngineExplorationOptions& options,
                                               const ExploreWatch& watch) {
  auto scheduler = make_scheduler(options.scheduler, options.seed);
  if (!scheduler) return tl::unexpected(scheduler.error());
  auto runner = CaseRunner::create(options.engine_case);
  if (!runner) return tl::unexpected(runner.error());
  return EngineExplorer(options, std::move(*runner)).run(**scheduler, watch);
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
