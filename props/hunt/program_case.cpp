#include "props/hunt/program_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "props/hunt/applicability.h"
#include "props/hunt/overlap_judge.h"
#include "props/interpreter/difference.h"
#include "props/interpreter/judged_ranks.h"
#include "props/interpreter/observe.h"
#include "props/interpreter/rank_walkers.h"
#include "props/interpreter/rest_points.h"
#include "props/run_properties.h"
#include "props/train/cell_run.h"
#include "props/train/run_judge.h"

namespace zeroproof::hunt {
namespace {

using program::Observed;
using program::Program;

std::string_view number_of(Observed what) {
  switch (what) {
    case Observed::gradients:
      return "P26";
    case Observed::update:
      return "R7";
    case Observed::outcome:
      return "R8";
    case Observed::norm:
      return "R9";
    case Observed::counters:
    case Observed::saved:
      return "R13";
    case Observed::refusal:
      return "R14";
    case Observed::loss:
    case Observed::value:
      break;
  }
  return "R6";
}

// What the world saw explains the errors that followed.
void judge_run(const program::SegmentRun& run, CaseResult& result) {
  for (const sim::Finding& finding : run.findings)
    result.add(property_of(finding.kind), finding.text, finding.rank);
  if (!run.findings.empty() || !run.has_failed()) return;
  const auto failed = train::first_failed(run.ranks);
  result.add("R1", train::text_of(failed->error), static_cast<int>(failed - run.ranks.begin()));
}

void add_all(const Program& program, const PropertiesReport& report, CaseResult& result) {
  for (const Finding& finding : report.falsified)
    if (is_applicable(program, finding.property->number))
      result.add(finding.property->number, finding.text, finding.rank);
}

void add_all(const program::RankWalkers& walkers, CaseResult& result) {
  walkers.for_each_finding([&](int rank, const reference::Finding& finding) {
    const reference::RuleInfo& rule = reference::info(finding.rule);
    result.add(rule.property, fmt::format("{}, at lc {}: {}", rule.id, finding.lc, finding.text),
               rank);
  });
}

}  // namespace

const std::vector<std::vector<program::Observations>>& ProgramCase::reference() {
  if (!reference_) reference_ = program::run_reference(*runnable_);
  return *reference_;
}

void ProgramCase::judge_values(const program::EngineVariant& variant, Chooser& chooser,
                               CaseResult& result) {
  const Program& program = runnable_->program();
  const int last = runnable_->segments().back().ranks * program.world.tensor;
  AccessWatch streams(last, overlap_rules_of(program));
  const program::ProgramRun run = program::run_program(
      *runnable_, {.variant = variant, .chooser = &chooser, .watch = &streams});
  ++result.executions;
  result.events = run.steps;
  for (std::size_t i = 0; i < run.segments.size(); ++i) {
    judge_run(run.segments[i], result);
    if (!run.segments[i].has_failed()) compare(run.segments[i], i, result);
  }
  add_all(program, streams.races().finish(), result);
  if (!streams.overlap_finding().empty() && is_applicable(program, "R20"))
    result.add("R20", streams.overlap_finding());
}

void ProgramCase::compare(const program::SegmentRun& run, std::size_t segment, CaseResult& result) {
  const Program& program = runnable_->program();
  const program::Tolerance tolerance = program::tolerance_of(program);
  const auto tensor = static_cast<std::size_t>(program.world.tensor);
  std::vector<const program::Observations*> all;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const program::Observations& seen = run.ranks[rank].seen;
    all.push_back(&seen);
    for (const program::Difference& difference :
         program::differences(seen, reference().at(segment).at(rank / tensor), tolerance))
      result.add(number_of(difference.what), difference.text, static_cast<int>(rank));
  }
  if (const auto differing = program::difference_of_ranks(all)) result.add("P40", *differing);
}

void ProgramCase::judge_events(const program::EngineVariant& variant, Chooser& chooser,
                               CaseResult& result) {
  train::RunJudge judge(program::judged_ranks(*runnable_));
  program::RankWalkers walkers(*runnable_, variant, judge);
  const program::ProgramRun run = program::run_program(
      *runnable_, {.observes = false,
                   .variant = variant,
                   .chooser = &chooser,
                   .watch = &judge,
                   .rests = program::rest_points(runnable_->program(), runnable_->contract())});
  ++result.executions;
  result.events = run.steps;
  for (const program::SegmentRun& segment : run.segments) judge_run(segment, result);
  if (run.segments.size() < runnable_->segments().size()) return;
  const program::SegmentRun& last = run.segments.back();
  if (!last.findings.empty()) return;
  walkers.finish(last.ranks);
  add_all(walkers, result);
  coverage_ = walkers.coverage();
  add_all(runnable_->program(), judge.finish(train::errors_of(last.ranks)), result);
}

}  // namespace zeroproof::hunt
