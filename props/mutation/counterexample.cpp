// A counterexample as a word, and again.
#include <fmt/format.h>

#include "props/mutation/hunt.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::mutation {
namespace {

constexpr std::string_view kPrefix = "mutation/";
constexpr std::string_view kFormerPrefix = "museum/";  // read, and not written any more

}  // namespace

CaseResult replay(const Counterexample& counterexample, const Fault* fault) {
  CaseRun case_run(counterexample.spec);
  ReplayScheduler scheduler(counterexample.choices, ReplayFit::lenient);
  scheduler.new_execution();
  CaseResult result;
  if (counterexample.is_of_events) {
    case_run.judge_events(fault, scheduler, result);
  } else {
    case_run.judge_values(fault, scheduler, result);
  }
  return result;
}

bool is_within(const Counterexample& counterexample, const CatalogueRow& smallest) {
  const bool has_few_ranks =
      smallest.ranks == 0 || counterexample.spec.world_size() <= smallest.ranks;
  return has_few_ranks &&
         (smallest.parameters == 0 || counterexample.spec.parameters() <= smallest.parameters);
}

std::string token_of(const Counterexample& counterexample, std::string_view id) {
  Schedule schedule;
  schedule.scenario = fmt::format("{}{}", kPrefix, id);
  schedule.settings["case"] = train::case_json(counterexample.spec);
  schedule.settings["judge"] = counterexample.is_of_events ? "events" : "values";
  schedule.choices = counterexample.choices;
  return schedule_text(schedule);
}

Result<ReadToken> read_token(std::string_view text, std::string_view where) {
  const auto schedule = parse_schedule(text, where);
  if (!schedule) return tl::unexpected(schedule.error());
  const std::string place(where);
  const bool is_former = schedule->scenario.starts_with(kFormerPrefix);
  if (!is_former && !schedule->scenario.starts_with(kPrefix))
    return fail(ErrorCode::usage, place + ": not a schedule of a mutated engine");
  const auto case_text = schedule->settings.find("case");
  const auto judge = schedule->settings.find("judge");
  if (case_text == schedule->settings.end() || judge == schedule->settings.end())
    return fail(ErrorCode::usage, place + ": no case, or no judge");
  auto spec = train::parse_case(case_text->second, place + ": case");
  if (!spec) return tl::unexpected(spec.error());
  return ReadToken{schedule->scenario.substr((is_former ? kFormerPrefix : kPrefix).size()),
                   {std::move(*spec), judge->second == "events", schedule->choices}};
}

}  // namespace zeroproof::mutation
