#include "props/hunt/program_hunt.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model/splitmix64.h"
#include "props/program/draw.h"
#include "props/program/program_text.h"
#include "props/program/shrink.h"
#include "props/program/source_chooser.h"
#include "sim/schedule.h"

namespace zeroproof::hunt {
namespace {

using program::EngineVariant;

constexpr std::size_t kPoolMax = 4096;  // programs that are kept with their references
constexpr std::string_view kPrefix = "program/";

EngineVariant variant_of(const Mutant* fault) {
  return fault ? fault->variant : EngineVariant{};
}

// Goes on from the program's choices.
CaseResult judge_one(DrawnProgram& drawn, const ProgramJudge& judge, const EngineVariant& variant,
                     program::Source& source) {
  source = drawn.source;
  program::SourceChooser chooser(source);
  return drawn.program->judge(judge, variant, chooser);
}

std::optional<ProgramReplay> replay_drawn(DrawnProgram drawn, const ProgramJudge& judge,
                                          const EngineVariant& variant) {
  if (!drawn.program) return std::nullopt;
  const program::RunnableProgram& runnable = drawn.program->runnable();
  program::Source source = drawn.source;
  return ProgramReplay{judge_one(drawn, judge, variant, source),
                       program::program_text(runnable.program(), &runnable.contract())};
}

// A relation counts wherever it speaks, whether it was drawn or not.
void count(ProgramCase& program, bool counts_relations, Activity& activity) {
  std::set<std::string_view> numbers = program.active();
  if (counts_relations)
    for (const relations::Relation* const relation : program.relations())
      numbers.insert(relation->number);
  for (const std::string_view number : numbers) ++activity.active[number];
  ++activity.cases;
}

}  // namespace

std::uint64_t case_seed(std::uint64_t seed, std::uint64_t number) {
  return seed * 1'000'003 + number;
}

DrawnProgram draw_case(program::Source source) {
  DrawnProgram drawn{std::move(source), nullptr, ""};
  auto made = ProgramCase::make(program::draw_program(drawn.source));
  if (made)
    drawn.program = std::move(*made);
  else
    drawn.problem = made.error().text;
  return drawn;
}

DrawnProgram& ProgramHunter::at(std::uint64_t number) {
  if (const auto known = pool_.find(number); known != pool_.end()) return known->second;
  if (pool_.size() >= kPoolMax) pool_.clear();
  return pool_.emplace(number, options_.draw(program::Source(case_seed(options_.seed, number))))
      .first->second;
}

// One case in so many has a relation, which is drawn of those that speak of its program.
std::vector<const relations::Relation*> ProgramHunter::relations_of(const DrawnProgram& drawn,
                                                                    std::uint64_t number) const {
  constexpr std::uint64_t kCases = 4;
  if (!options_.has_all_relations && number % kCases != 0) return {};
  std::vector<const relations::Relation*> speaking = drawn.program->relations();
  if (options_.has_all_relations || speaking.empty()) return speaking;
  std::uint64_t state = case_seed(options_.seed, number);
  return {speaking[next_splitmix64(state) % speaking.size()]};
}

std::vector<ProgramHunter::JudgedRun> ProgramHunter::judge(DrawnProgram& drawn,
                                                           std::uint64_t number,
                                                           const EngineVariant& variant,
                                                           Depth depth) const {
  std::vector<JudgedRun> runs;
  if (options_.judge) {
    runs.push_back({*options_.judge, {}, drawn.source});
    runs.back().result = judge_one(drawn, *options_.judge, variant, runs.back().source);
    return runs;
  }
  const auto ends = [&] { return depth == Depth::first && !runs.back().result.falsified.empty(); };
  JudgedRun values{{ProgramJudge::Kind::values}, {}, drawn.source};
  program::SourceChooser chooser(values.source);
  const program::ProgramRun run = drawn.program->judge_values(variant, chooser, values.result);
  runs.push_back(values);
  if (ends()) return runs;
  runs.push_back({{ProgramJudge::Kind::events}, {}, drawn.source});
  runs.back().result = judge_one(drawn, runs.back().judge, variant, runs.back().source);
  if (ends()) return runs;
  for (const relations::Relation* const relation : relations_of(drawn, number)) {
    runs.push_back({{ProgramJudge::Kind::relation, relation}, {}, values.source});
    program::SourceChooser further(runs.back().source);
    drawn.program->judge_relation(*relation, run, variant, further, runs.back().result);
    if (ends()) break;
  }
  return runs;
}

// What a relation says is the fault's doing, whatever it was expected to break.
const Falsified* ProgramHunter::falsified_by(const JudgedRun& run, const Mutant& fault) {
  const bool is_relation = run.judge.kind == ProgramJudge::Kind::relation;
  return run.result.find(is_relation ? std::string_view() : fault.properties);
}

ProgramFound ProgramHunter::hunt(const Mutant& fault) {
  ProgramFound found{.fault = &fault};
  const std::int64_t start = watch_.now_ns();
  const auto seconds = [&] { return static_cast<double>(watch_.now_ns() - start) * 1e-9; };
  for (std::uint64_t number = 0; number < options_.cases_max; ++number) {
    if (watch_.should_stop && watch_.should_stop()) break;
    if (watch_.now_ns() - start > options_.time_max_ns) break;
    DrawnProgram& drawn = at(number);
    if (!drawn.program) continue;
    const std::vector<JudgedRun> runs = judge(drawn, number, fault.variant, Depth::first);
    for (const JudgedRun& run : runs) found.executions += run.result.executions;
    const JudgedRun& last = runs.back();
    const Falsified* const falsified = falsified_by(last, fault);
    if (!falsified) continue;
    ProgramCounterexample counterexample{program::values_of(last.source.choices()), last.judge};
    // A finding that is not the fault's is the harness's or the engine's.
    const auto without = replay_of(counterexample, fault.reference);
    if (!without || !without->result.falsified.empty()) continue;
    found.is_found = true;
    found.case_number = number;
    found.property = falsified->property;
    found.finding = falsified->text;
    found.counterexample = std::move(counterexample);
    break;
  }
  found.seconds = seconds();
  if (found.is_found && options_.minimizes) finish(found);
  return found;
}

// Something simpler that falsifies the same property, and none without the fault.
void ProgramHunter::finish(ProgramFound& found) {
  const std::string_view number = found.property->number;
  const ProgramJudge judge = found.counterexample.judge;
  const program::StillFails fails =
      [&](const std::vector<std::uint32_t>& values) -> std::optional<program::Choices> {
    DrawnProgram tried = options_.draw(program::Source(values));
    if (!tried.program) return std::nullopt;
    program::Source source = tried.source;
    if (!judge_one(tried, judge, variant_of(found.fault), source).find(number)) return std::nullopt;
    program::Source without = tried.source;
    if (found.fault && !judge_one(tried, judge, found.fault->reference, without).falsified.empty())
      return std::nullopt;
    return source.choices();
  };
  const auto start = fails(found.counterexample.values);
  if (!start) return;
  found.choices_before = start->list.size();
  const program::Shrunk shrunk = program::shrink(*start, fails, options_.shrink_runs);
  found.counterexample.values = program::values_of(shrunk.choices);
  found.shrink_runs = shrunk.runs;
  if (const auto last = replay_of(found.counterexample, variant_of(found.fault)))
    if (const Falsified* const falsified = last->result.find(number))
      found.finding = falsified->text;
}

ProgramHunter::Unmutated ProgramHunter::run_unmutated(
    std::uint64_t first, std::uint64_t cases_max, std::int64_t time_max_ns,
    const std::function<void(const ProgramFound&)>& on_finding) {
  Unmutated run;
  std::set<std::string> known;
  const std::int64_t start = watch_.now_ns();
  for (std::uint64_t number = first; run.cases < cases_max; ++number) {
    if (watch_.should_stop && watch_.should_stop()) break;
    if (watch_.now_ns() - start > time_max_ns) break;
    ++run.cases;
    DrawnProgram& drawn = at(number);
    ProgramFound found{.case_number = number};
    if (!drawn.program) {
      found.finding = "no program: " + drawn.problem;
      program::Source source = drawn.source;
      (void)program::draw_program(source);
      found.counterexample.values = program::values_of(source.choices());
      on_finding(found);
      continue;
    }
    const std::vector<JudgedRun> runs = judge(drawn, number, {}, Depth::all);
    for (const JudgedRun& one : runs) run.executions += one.result.executions;
    count(*drawn.program, options_.counts_relations, run.activity);
    run.coverage.add(drawn.program->coverage());
    pool_.clear();
    const auto falsified = std::ranges::find_if(
        runs, [](const JudgedRun& one) { return !one.result.falsified.empty(); });
    if (falsified == runs.end()) continue;
    found.counterexample = {program::values_of(falsified->source.choices()), falsified->judge};
    found.property = falsified->result.falsified.front().property;
    found.finding = falsified->result.falsified.front().text;
    found.is_found = true;
    if (found.property && options_.minimizes) finish(found);
    if (known.insert(found.finding).second) on_finding(found);
  }
  run.seconds = static_cast<double>(watch_.now_ns() - start) * 1e-9;
  return run;
}

std::optional<ProgramReplay> ProgramHunter::replay_of(const ProgramCounterexample& counterexample,
                                                      const EngineVariant& variant) const {
  return replay_drawn(options_.draw(program::Source(counterexample.values)), counterexample.judge,
                      variant);
}

std::optional<ProgramReplay> replay(const ProgramCounterexample& counterexample,
                                    const EngineVariant& variant) {
  return replay_drawn(draw_case(program::Source(counterexample.values)), counterexample.judge,
                      variant);
}

std::optional<ProgramReplay> replay(const ProgramCounterexample& counterexample,
                                    const Mutant* fault) {
  return replay(counterexample, variant_of(fault));
}

std::string token_of(const ProgramCounterexample& counterexample, std::string_view id) {
  Schedule schedule;
  schedule.scenario = std::string(kPrefix) + std::string(id);
  schedule.settings["judge"] = name_of(counterexample.judge);
  schedule.choices = counterexample.values;
  return schedule_text(schedule);
}

std::string token_of(const ProgramFound& found) {
  return token_of(found.counterexample, found.fault ? found.fault->id : "unmutated");
}

Result<ProgramCounterexample> read_program_token(std::string_view text, std::string_view where) {
  const auto schedule = parse_schedule(text, where);
  if (!schedule) return tl::unexpected(schedule.error());
  const auto name = schedule->settings.find("judge");
  if (!schedule->scenario.starts_with(kPrefix) || name == schedule->settings.end())
    return fail(ErrorCode::usage, std::string(where) + ": not a program's counterexample");
  const auto judge = judge_named(name->second);
  if (!judge)
    return fail(ErrorCode::usage, std::string(where) + ": no judge is called '" + name->second +
                                      "'; values, events and the numbers of relations are");
  return ProgramCounterexample{schedule->choices, *judge};
}

}  // namespace zeroproof::hunt
