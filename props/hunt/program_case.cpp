#include "props/hunt/program_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <string>

#include "props/hunt/applicability.h"
#include "props/hunt/overlap_judge.h"
#include "props/interpreter/difference.h"
#include "props/interpreter/judged_ranks.h"
#include "props/interpreter/observe.h"
#include "props/interpreter/rank_walkers.h"
#include "props/interpreter/rest_points.h"
#include "props/relations/pair.h"
#include "props/run_properties.h"
#include "props/train/cell_run.h"
#include "props/train/run_judge.h"

namespace zeroproof::hunt {
namespace {

using program::Observed;
using program::Program;

// What the simulated world sees in every run.
constexpr std::array<std::string_view, 5> kWorldProperties = {"R1", "R2", "R3", "R4", "R5"};

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

ProgramCase::ProgramCase(std::unique_ptr<const program::RunnableProgram> runnable)
    : runnable_(std::move(runnable)), overlap_(overlap_rules_of(*runnable_)) {}

Result<std::unique_ptr<ProgramCase>> ProgramCase::make(const program::Program& program) {
  auto runnable = program::RunnableProgram::make(program);
  if (!runnable) return tl::unexpected(runnable.error());
  auto made = std::make_unique<ProgramCase>(std::move(*runnable));
  try {
    (void)made->reference();
  } catch (const std::exception& error) {
    return fail(ErrorCode::usage, error.what());
  }
  return made;
}

const std::vector<std::vector<program::Observations>>& ProgramCase::reference() {
  if (!reference_) reference_ = program::run_reference(*runnable_);
  return *reference_;
}

const std::vector<const relations::Relation*>& ProgramCase::relations() {
  if (relations_) return *relations_;
  relations_.emplace();
  for (const relations::Relation& relation : relations::all_relations())
    if (relations::Pair::make(relation, *runnable_)) relations_->push_back(&relation);
  return *relations_;
}

CaseResult ProgramCase::judge(const ProgramJudge& judge, const program::EngineVariant& variant,
                              Chooser& chooser) {
  CaseResult result;
  if (judge.kind == ProgramJudge::Kind::events) {
    judge_events(variant, chooser, result);
    return result;
  }
  const program::ProgramRun run = judge_values(variant, chooser, result);
  if (judge.kind == ProgramJudge::Kind::values) return result;
  result.falsified.clear();
  judge_relation(*judge.relation, run, variant, chooser, result);
  return result;
}

// What the reference leaves open is judged by no one.
void ProgramCase::note(std::span<const program::Observations> reference) {
  for (const program::Observations& seen : reference)
    for (const program::Observation& one : seen) {
      if (one.is_unspecified) continue;
      active_.insert(number_of(one.what));
      if (one.what == Observed::update && reference.size() > 1) active_.insert("P40");
    }
}

void ProgramCase::note(const reference::Coverage& coverage) {
  for (const reference::RuleInfo& rule : reference::rules()) {
    if (coverage.applied[static_cast<std::size_t>(rule.rule)] == 0) continue;
    active_.insert(rule.id);
    active_.insert(rule.property);
  }
}

void ProgramCase::note(const PropertiesReport& report) {
  const auto add = [&](const Property* property) {
    if (is_applicable(runnable_->program(), property->number)) active_.insert(property->number);
  };
  for (const Property* const property : report.held) add(property);
  for (const Finding& finding : report.falsified) add(finding.property);
}

program::ProgramRun ProgramCase::judge_values(const program::EngineVariant& variant,
                                              Chooser& chooser, CaseResult& result) {
  const Program& program = runnable_->program();
  const program::RunnableProgram::Segment& last = runnable_->segments().back();
  AccessWatch streams(last.ranks * program.world.tensor, overlap_);
  program::ProgramRun run = program::run_program(
      *runnable_, {.variant = variant, .chooser = &chooser, .watch = &streams});
  ++result.executions;
  result.events = run.steps;
  for (std::size_t i = 0; i < run.segments.size(); ++i) {
    judge_run(run.segments[i], result);
    if (!run.segments[i].has_failed()) compare(run.segments[i], i, result);
  }
  const PropertiesReport races = streams.races().finish();
  note(races);
  add_all(program, races, result);
  active_.insert(kWorldProperties.begin(), kWorldProperties.end());
  if (!overlap_.judges_anything() || !is_applicable(program, "R20")) return run;
  active_.insert("R20");
  if (!streams.overlap_finding().empty()) result.add("R20", streams.overlap_finding());
  return run;
}

void ProgramCase::compare(const program::SegmentRun& run, std::size_t segment, CaseResult& result) {
  const Program& program = runnable_->program();
  note(reference().at(segment));
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
  note(coverage_);
  const PropertiesReport report = judge.finish(train::errors_of(last.ranks));
  note(report);
  add_all(runnable_->program(), report, result);
}

void ProgramCase::judge_relation(const relations::Relation& relation,
                                 const program::ProgramRun& run,
                                 const program::EngineVariant& variant, Chooser& chooser,
                                 CaseResult& result) {
  const auto pair = relations::Pair::make(relation, *runnable_);
  if (!pair || run.has_failed()) return;
  const program::ProgramRun other =
      program::run_program(pair->other(), {.variant = variant, .chooser = &chooser});
  ++result.executions;
  result.events = other.steps;
  CaseResult failure;
  for (const program::SegmentRun& segment : other.segments) judge_run(segment, failure);
  for (const Falsified& one : failure.falsified)
    result.add(relation.number, "the other run: " + one.text, one.rank);
  if (other.has_failed()) return;
  if (const auto finding = pair->compare(run, other))
    result.add(relation.number, finding->text, finding->rank);
}

}  // namespace zeroproof::hunt
