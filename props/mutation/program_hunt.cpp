#include "props/mutation/program_hunt.h"

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

namespace zeroproof::mutation {
namespace {

constexpr std::size_t kPoolMax = 4096;  // programs that are kept with their references
constexpr std::string_view kPrefix = "program/";

std::uint64_t case_seed(std::uint64_t seed, std::uint64_t number) {
  return seed * 1'000'003 + number;
}

// Null, and why, for what is no program: by its contract, or for the reference.
std::unique_ptr<ProgramCase> case_of(program::Source& source, std::string* problem) {
  const auto reject = [&](std::string why) -> std::unique_ptr<ProgramCase> {
    if (problem) *problem = std::move(why);
    return nullptr;
  };
  auto runnable = program::RunnableProgram::make(program::draw_program(source));
  if (!runnable) return reject(runnable.error().text);
  auto made = std::make_unique<ProgramCase>(std::move(*runnable));
  try {
    (void)made->reference();
  } catch (const std::exception& error) {
    return reject(error.what());
  }
  return made;
}

void judge_one(ProgramCase& program, bool is_of_events, const Fault* fault, Chooser& chooser,
               CaseResult& result) {
  if (is_of_events)
    program.judge_events(fault, chooser, result);
  else
    program.judge_values(fault, chooser, result);
}

}  // namespace

// A program, and the source as it stands behind it: each run goes on from a copy.
struct ProgramHunter::Drawn {
  program::Source source;
  std::unique_ptr<ProgramCase> program;
  std::string problem;  // of what is no program
};

ProgramHunter::Drawn& ProgramHunter::at(std::uint64_t number) {
  if (const auto known = pool_.find(number); known != pool_.end()) return *known->second;
  if (pool_.size() >= kPoolMax) pool_.clear();
  auto drawn = std::make_shared<Drawn>(
      Drawn{program::Source(case_seed(options_.seed, number)), nullptr, ""});
  drawn->program = case_of(drawn->source, &drawn->problem);
  return *pool_.emplace(number, std::move(drawn)).first->second;
}

CaseResult ProgramHunter::judge(Drawn& drawn, const Fault* fault, CaseRun::Depth depth,
                                program::Choices (&made)[2]) {
  program::Source sources[] = {drawn.source, drawn.source};
  program::SourceChooser choosers[] = {program::SourceChooser(sources[0]),
                                       program::SourceChooser(sources[1])};
  const CaseResult result =
      drawn.program->run(fault, depth, [&](int run) -> Chooser& { return choosers[run]; });
  for (int run = 0; run < 2; ++run) made[run] = sources[run].choices();
  return result;
}

ProgramFound ProgramHunter::hunt(const Fault& fault) {
  ProgramFound found{.fault = &fault};
  const std::int64_t start = watch_.now_ns();
  const auto seconds = [&] { return static_cast<double>(watch_.now_ns() - start) * 1e-9; };
  for (std::uint64_t number = 0; number < options_.cases_max; ++number) {
    if (watch_.should_stop && watch_.should_stop()) break;
    if (watch_.now_ns() - start > options_.time_max_ns) break;
    Drawn& drawn = at(number);
    if (!drawn.program) continue;
    program::Choices made[2];
    const CaseResult result = judge(drawn, &fault, CaseRun::Depth::first, made);
    found.executions += result.executions;
    const Falsified* const falsified = result.find(fault.properties);
    if (!falsified) continue;
    const bool is_of_events = result.executions == 2;
    ProgramCounterexample counterexample{program::values_of(made[is_of_events ? 1 : 0]),
                                         is_of_events};
    // A finding that is not the fault's is the harness's or the engine's.
    const auto without = replay(counterexample, fault.reference);
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
    const ProgramCounterexample tried{values, is_of_events};
    const auto again = replay(tried, found.fault);
    if (!again || !again->result.find(number)) return std::nullopt;
    if (found.fault) {
      const auto without = replay(tried, found.fault->reference);
      if (!without || !without->result.falsified.empty()) return std::nullopt;
    }
    return again->choices;
  };
  const auto start = fails(found.counterexample.values);
  if (!start) return;
  found.choices_before = start->list.size();
  const program::Shrunk shrunk = program::shrink(*start, fails, options_.shrink_runs);
  found.counterexample.values = program::values_of(shrunk.choices);
  found.shrink_runs = shrunk.runs;
  if (const auto last = replay(found.counterexample, found.fault))
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
    Drawn& drawn = at(number);
    ProgramFound found{.case_number = number};
    if (!drawn.program) {
      found.finding = "no program: " + drawn.problem;
      on_finding(found);
      continue;
    }
    program::Choices made[2];
    const CaseResult result = judge(drawn, nullptr, CaseRun::Depth::all, made);
    run.executions += result.executions;
    pool_.clear();
    if (result.falsified.empty()) continue;
    for (const bool is_of_events : {false, true}) {
      found.counterexample = {program::values_of(made[is_of_events ? 1 : 0]), is_of_events};
      const auto again = replay(found.counterexample, nullptr);
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

std::optional<ProgramReplay> replay(const ProgramCounterexample& counterexample,
                                    const Fault* fault) {
  program::Source source(counterexample.values);
  const auto program = case_of(source, nullptr);
  if (!program) return std::nullopt;
  ProgramReplay replayed;
  program::SourceChooser chooser(source);
  judge_one(*program, counterexample.is_of_events, fault, chooser, replayed.result);
  replayed.choices = source.choices();
  const program::RunnableProgram& runnable = program->runnable();
  replayed.text = program::program_text(runnable.program(), &runnable.contract());
  return replayed;
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

}  // namespace zeroproof::mutation
