#include "sim/explorer.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/schedulers/record.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kStepsBetweenStopRequests = 1024;

class Exploration final : public Chooser {
 public:
  Exploration(Scheduler& scheduler, const Budget& budget, const ExploreWatch& watch)
      : recorder_(scheduler), budget_(budget), watch_(watch) {}

  std::size_t choose(const ChoicePoint& at) override {
    if (progress().steps == budget_.steps) stop(ExploreEnd::budget);
    if (progress().steps % kStepsBetweenStopRequests == 0) obey_caller();
    if (stopped_) throw ExecutionCut();
    ++progress().steps;
    return recorder_.choose(at);
  }

  ExploreResult run(const RunFunction& function) {
    while (may_continue()) {
      run_once(function);
      report();
    }
    result_.end = *stopped_;
    return std::move(result_);
  }

 private:
  ExploreProgress& progress() { return result_.progress; }

  void stop(ExploreEnd end) {
    if (!stopped_) stopped_ = end;
  }

  void obey_caller() {
    const StopRequest request = watch_.should_stop ? watch_.should_stop() : StopRequest::none;
    if (request == StopRequest::time_over) stop(ExploreEnd::time_over);
    if (request == StopRequest::interrupted) stop(ExploreEnd::interrupted);
  }

  // Prepares the next execution unless something ends the exploration.
  bool may_continue() {
    if (const auto divergence = recorder_.divergence()) {
      result_.divergence = *divergence;
      stopped_ = ExploreEnd::diverged;
    }
    if (stopped_) return false;
    if (recorder_.stats().has_exhausted) {
      stop(ExploreEnd::exhausted);
      return false;
    }
    obey_caller();
    if (result_.executions == budget_.executions || progress().steps >= budget_.steps) {
      stop(ExploreEnd::budget);
    }
    if (!stopped_ && !recorder_.new_execution()) stop(ExploreEnd::exhausted);
    return !stopped_;
  }

  void run_once(const RunFunction& function) {
    const std::uint64_t execution = result_.executions++;
    ExecutionEnd end;
    Outcome outcome;
    try {
      outcome = function(*this);
      end.final_state = outcome.final_state;
    } catch (const ExecutionCut&) {
      end.was_cut = true;
    }
    recorder_.end_execution(end);
    if (end.was_cut || recorder_.divergence()) return;
    ++result_.complete_executions;
    for (const Falsified& falsified : outcome.falsified) note(falsified, execution, outcome.order);
    if (budget_.stops_at_first_finding && !result_.findings.empty()) {
      stop(ExploreEnd::first_finding);
    }
  }

  void note(const Falsified& falsified, std::uint64_t execution, const std::string& order) {
    auto& findings = result_.findings;
    auto place = std::lower_bound(findings.begin(), findings.end(), falsified.property,
                                  [](const FailingProperty& finding, std::uint32_t property) {
                                    return finding.property < property;
                                  });
    const bool is_new = place == findings.end() || place->property != falsified.property;
    if (is_new) place = findings.insert(place, {falsified.property, 0, {}, {}});
    ++place->failing_executions;
    FailingRun& best = place->shortest;
    const Choices& choices = recorder_.choices();
    if (is_new || std::tie(falsified.events, choices) < std::tie(best.events, best.choices)) {
      best = {choices, falsified.events, execution, order};
    }
    if (is_new) place->first = best;
  }

  void report() {
    progress().executions = result_.executions;
    progress().deepest = std::max<std::uint64_t>(progress().deepest, recorder_.choices().size());
    progress().findings = result_.findings.size();
    progress().scheduler = recorder_.stats();
    if (watch_.on_progress) watch_.on_progress(progress());
  }

  RecordScheduler recorder_;
  const Budget& budget_;
  const ExploreWatch& watch_;
  std::optional<ExploreEnd> stopped_;
  ExploreResult result_;
};

}  // namespace

ExploreResult explore(const RunFunction& run, Scheduler& scheduler, const Budget& budget,
                      const ExploreWatch& watch) {
  return Exploration(scheduler, budget, watch).run(run);
}

}  // namespace zeroproof
