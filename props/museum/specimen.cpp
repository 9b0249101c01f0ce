// A specimen as a word, and again.
#include <fmt/format.h>

#include "props/museum/hunt.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::museum {
namespace {

constexpr std::string_view kPrefix = "museum/";

}  // namespace

TrialResult replay(const Specimen& specimen, const Entry* entry) {
  Trial trial(specimen.spec);
  ReplayScheduler scheduler(specimen.choices, ReplayFit::lenient);
  scheduler.new_execution();
  TrialResult result;
  if (specimen.is_of_events) {
    trial.judge_events(entry, scheduler, result);
  } else {
    trial.judge_values(entry, scheduler, result);
  }
  return result;
}

bool is_within(const Specimen& specimen, const CatalogueRow& smallest) {
  const bool has_few_ranks = smallest.ranks == 0 || specimen.spec.world_size() <= smallest.ranks;
  return has_few_ranks &&
         (smallest.parameters == 0 || specimen.spec.parameters() <= smallest.parameters);
}

std::string token_of(const Specimen& specimen, std::string_view id) {
  Schedule schedule;
  schedule.scenario = fmt::format("{}{}", kPrefix, id);
  schedule.settings["case"] = train::case_json(specimen.spec);
  schedule.settings["judge"] = specimen.is_of_events ? "events" : "values";
  schedule.choices = specimen.choices;
  return schedule_text(schedule);
}

Result<ReadToken> read_token(std::string_view text, std::string_view where) {
  const auto schedule = parse_schedule(text, where);
  if (!schedule) return tl::unexpected(schedule.error());
  const std::string place(where);
  if (!schedule->scenario.starts_with(kPrefix))
    return fail(ErrorCode::usage, place + ": not a schedule of the museum");
  const auto case_text = schedule->settings.find("case");
  const auto judge = schedule->settings.find("judge");
  if (case_text == schedule->settings.end() || judge == schedule->settings.end())
    return fail(ErrorCode::usage, place + ": no case, or no judge");
  auto spec = train::parse_case(case_text->second, place + ": case");
  if (!spec) return tl::unexpected(spec.error());
  return ReadToken{schedule->scenario.substr(kPrefix.size()),
                   {std::move(*spec), judge->second == "events", schedule->choices}};
}

}  // namespace zeroproof::museum
