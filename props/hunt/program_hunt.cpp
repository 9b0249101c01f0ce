#include "props/hunt/program_hunt.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "model/check.h"
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

// One of the two runs, and the choices that it and its program made.
struct JudgedRun {
  CaseResult result;
  program::Choices choices;
};

JudgedRun judge_one(DrawnProgram& drawn, bool is_of_events, const EngineVariant& variant) {
  program::Source source = drawn.source;
  program::SourceChooser chooser(source);
  JudgedRun run;
  if (is_of_events)
    drawn.program->judge_events(variant, chooser, run.result);
  else
    drawn.program->judge_values(variant, chooser, run.result);
  run.choices = source.choices();
  return run;
}

std::optional<ProgramReplay> replay_drawn(DrawnProgram drawn, bool is_of_events,
                                          const EngineVariant& variant) {
  if (!drawn.program) return std::nullopt;
  const program::RunnableProgram& runnable = drawn.program->runnable();
  return ProgramReplay{judge_one(drawn, is_of_events, variant).result,
                       program::program_text(runnable.program(), &runnable.contract())};
}

}  // namespace

std::uint64_t case_seed(std::uint64_t seed, std::uint64_t number) {
  return seed * 1'000'003 + number;
}

DrawnProgram draw_case(program::Source source) {
  DrawnProgram drawn{std::move(source), nullptr, ""};
  auto runnable = program::RunnableProgram::make(program::draw_program(drawn.source));
  if (!runnable) {
    drawn.problem = runnable.error().text;
    return drawn;
  }
  auto made = std::make_unique<ProgramCase>(std::move(*runnable));
  try {
    (void)made->reference();
    drawn.program = std::move(made);
  } catch (const std::exception& error) {
    drawn.problem = error.what();
  }
  return drawn;
}

DrawnProgram& ProgramHunter::at(std::uint64_t number) {
  if (const auto known = pool_.find(number); known != pool_.end()) return known->second;
  if (pool_.size() >= kPoolMax) pool_.clear();
  return pool_.emplace(number, options_.draw(program::Source(case_seed(options_.seed, number))))
      .first->second;
}

CaseResult ProgramHunter::judge(DrawnProgram& drawn, const Mutant* fault, Depth depth,
                                program::Choices (&made)[2]) {
  program::Source sources[] = {drawn.source, drawn.source};
  program::SourceChooser choosers[] = {program::SourceChooser(sources[0]),
                                       program::SourceChooser(sources[1])};
  const CaseResult result = drawn.program->run(variant_of(fault), depth,
                                               [&](int run) -> Chooser& { return choosers[run]; });
  for (int run = 0; run < 2; ++run) made[run] = sources[run].choices();
  return result;
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
    program::Choices made[2];
    const CaseResult result = judge(drawn, &fault, Depth::first, made);
    found.executions += result.executions;
    const Falsified* const falsified = result.find(fault.properties);
    if (!falsified) continue;
    const bool is_of_events = result.executions == 2;
    ProgramCounterexample counterexample{program::values_of(made[is_of_events ? 1 : 0]),
                                         is_of_events};
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
  const bool is_of_events = found.counterexample.is_of_events;
  const program::StillFails fails =
      [&](const std::vector<std::uint32_t>& values) -> std::optional<program::Choices> {
    DrawnProgram tried = options_.draw(program::Source(values));
    if (!tried.program) return std::nullopt;
    JudgedRun again = judge_one(tried, is_of_events, variant_of(found.fault));
    if (!again.result.find(number)) return std::nullopt;
    if (found.fault &&
        !judge_one(tried, is_of_events, found.fault->reference).result.falsified.empty())
      return std::nullopt;
    return std::move(again.choices);
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
    program::Choices made[2];
    const CaseResult result = judge(drawn, nullptr, Depth::all, made);
    run.executions += result.executions;
    run.coverage.add(drawn.program->coverage());
    pool_.clear();
    if (result.falsified.empty()) continue;
    for (const bool is_of_events : {false, true}) {
      found.counterexample = {program::values_of(made[is_of_events ? 1 : 0]), is_of_events};
      const auto again = replay_of(found.counterexample, {});
      if (again && !again->result.falsified.empty()) {
        found.property = again->result.falsified.front().property;
        found.finding = again->result.falsified.front().text;
        break;
      }
    }
    found.is_found = true;
    if (found.property && options_.minimizes) finish(found);
    if (known.insert(found.finding).second) on_finding(found);
  }
  run.seconds = static_cast<double>(watch_.now_ns() - start) * 1e-9;
  return run;
}

std::optional<ProgramReplay> ProgramHunter::replay_of(const ProgramCounterexample& counterexample,
                                                      const EngineVariant& variant) const {
  return replay_drawn(options_.draw(program::Source(counterexample.values)),
                      counterexample.is_of_events, variant);
}

std::optional<ProgramReplay> replay(const ProgramCounterexample& counterexample,
                                    const EngineVariant& variant) {
  return replay_drawn(draw_case(program::Source(counterexample.values)),
                      counterexample.is_of_events, variant);
}

std::optional<ProgramReplay> replay(const ProgramCounterexample& counterexample,
                                    const Mutant* fault) {
  return replay(counterexample, variant_of(fault));
}

std::string token_of(const ProgramCounterexample& counterexample, std::string_view id) {
  Schedule schedule;
  schedule.scenario = std::string(kPrefix) + std::string(id);
  schedule.settings["judge"] = counterexample.is_of_events ? "events" : "values";
  schedule.choices = counterexample.values;
  return schedule_text(schedule);
}

Result<ProgramCounterexample> read_program_token(std::string_view text, std::string_view where) {
  const auto schedule = parse_schedule(text, where);
  if (!schedule) return tl::unexpected(schedule.error());
  const auto judge = schedule->settings.find("judge");
  if (!schedule->scenario.starts_with(kPrefix) || judge == schedule->settings.end())
    return fail(ErrorCode::usage, std::string(where) + ": not a program's counterexample");
  return ProgramCounterexample{schedule->choices, judge->second == "events"};
}

}  // namespace zeroproof::hunt
