#include "props/train/exploration_worker.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/schedulers/twice.h"

namespace zeroproof::train {
namespace {

// Reports to the coverage what another chooser decides.
class WatchedChooser final : public Chooser {
 public:
  WatchedChooser(Chooser& inner, Coverage& coverage) : inner_(inner), coverage_(coverage) {}

  std::size_t choose(const ChoicePoint& at) override {
    const std::size_t taken = inner_.choose(at);
    coverage_.note(at, taken);
    return taken;
  }

 private:
  Chooser& inner_;
  Coverage& coverage_;
};

bool is_shorter(const FailingRun& one, const FailingRun& other) {
  return std::tie(one.events, one.choices, one.execution) <
         std::tie(other.events, other.choices, other.execution);
}

}  // namespace

void ExplorationPart::add(const ExplorationPart& other) {
  if (divergence.empty() && !other.divergence.empty()) divergence = other.divergence;
  end = std::max(end, other.end);
  if (refusal.empty()) refusal = other.refusal;
  executions += other.executions;
  events += other.events;
  choices += other.choices;
  deepest = std::max(deepest, other.deepest);
  coverage.add(other.coverage);
  required.insert(other.required.begin(), other.required.end());
  for (const auto& [kind, theirs] : other.found) {
    const auto [place, is_new] = found.try_emplace(kind, theirs);
    if (is_new) continue;
    FoundKind& ours = place->second;
    ours.failing_executions += theirs.failing_executions;
    ours.first_execution = std::min(ours.first_execution, theirs.first_execution);
    if (is_shorter(theirs.shortest, ours.shortest)) ours.shortest = theirs.shortest;
  }
}

ExplorationWorker::ExplorationWorker(const EngineExplorationOptions& options, CaseRunner runner,
                                     const Deal& deal)
    : options_(options), runner_(std::move(runner)), deal_(deal) {}

ExplorationPart ExplorationWorker::run(Scheduler& scheduler, const ExploreWatch& watch) {
  DealtScheduler dealt(scheduler, deal_);
  TwiceScheduler twice(dealt);
  Scheduler& used = options_.runs_twice ? static_cast<Scheduler&>(twice) : dealt;
  const auto run_once = [&](Chooser& chooser) { return execute(chooser); };
  const ExploreResult result = explore(run_once, used, budget(), watch);
  summarize(result);
  if (const auto* pct = dynamic_cast<const PctScheduler*>(&scheduler))
    part_.certificate = pct->certificate();
  return std::move(part_);
}

Outcome ExplorationWorker::execute(Chooser& chooser) {
  WatchedChooser watched(chooser, part_.coverage);
  const CaseRun run = runner_.run(watched);
  part_.events += run.steps;
  if (run.status == CellStatus::refused) part_.refusal = run.refusal;
  part_.coverage.note(run);
  Outcome outcome;
  outcome.final_state = run.state;
  for (const CaseFinding& finding : run.findings)
    outcome.falsified.push_back({.property = index_of(finding.kind), .events = finding.step});
  return outcome;
}

std::uint32_t ExplorationWorker::index_of(const std::string& kind) {
  const auto at = std::ranges::find(kinds_, kind);
  if (at == kinds_.end()) {
    kinds_.push_back(kind);
    return static_cast<std::uint32_t>(kinds_.size() - 1);
  }
  return static_cast<std::uint32_t>(at - kinds_.begin());
}

// An execution that runs twice has two numbers.
std::uint64_t ExplorationWorker::number(std::uint64_t own) const {
  const std::uint64_t passes = options_.runs_twice ? 2 : 1;
  return deal_.number(own / passes) * passes + own % passes;
}

Budget ExplorationWorker::budget() const {
  Budget budget = options_.budget;
  if (deal_.stride == 1) return budget;
  const std::uint64_t passes = options_.runs_twice ? 2 : 1;
  if (budget.executions != Budget::kUnlimited)
    budget.executions = deal_.share(budget.executions / passes) * passes;
  if (budget.steps != Budget::kUnlimited) budget.steps /= deal_.stride;
  return budget;
}

void ExplorationWorker::summarize(const ExploreResult& result) {
  part_.end = result.end;
  part_.divergence = result.divergence;
  part_.executions = result.executions;
  part_.choices = result.progress.steps;
  part_.deepest = result.progress.deepest;
  part_.scheduler = result.progress.scheduler;
  part_.required = runner_.required();
  for (const FailingProperty& failing : result.findings) {
    FoundKind& kind = part_.found[kinds_[failing.property]];
    kind.failing_executions = failing.failing_executions;
    kind.first_execution = number(failing.first.execution);
    kind.shortest = failing.shortest;
    kind.shortest.execution = number(failing.shortest.execution);
  }
}

}  // namespace zeroproof::train
