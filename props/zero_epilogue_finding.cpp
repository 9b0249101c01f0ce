#include "props/zero_epilogue_finding.h"

#include <fmt/format.h>

#include "engine/files/small_file.h"
#include "sim/zero_epilogue/constraints.h"
#include "sim/zero_epilogue/schedule_file.h"
#include "sim/zero_epilogue/shrink.h"
#include "sim/zero_epilogue/token.h"

namespace zeroproof {

using zero_epilogue::Counterexample;
using zero_epilogue::Event;
using zero_epilogue::RankRules;
using zero_epilogue::RankState;
using zero_epilogue::SavedSchedule;
using zero_epilogue::Settings;
using zero_epilogue::Token;

namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

// What a collective is called depends on the state before it.
std::vector<std::string> in_words(const RankRules& rules, const std::vector<Event>& events) {
  std::vector<RankState> states(zero_epilogue::kRanksMax);
  std::vector<std::string> steps;
  for (const Event& event : events) {
    RankState& state = states[event.rank];
    steps.push_back(event_text(event, state));
    rules.step(state, event.what);
  }
  return steps;
}

Result<SavedSchedule> read(const std::string& word) {
  if (zero_epilogue::is_token_text(word)) {
    const auto token = zero_epilogue::parse_token(word);
    if (!token) return tl::unexpected(token.error());
    return SavedSchedule{*token, {}};
  }
  return read_small_file(word, kFileBytesMax).and_then([&](const std::string& text) {
    return zero_epilogue::parse_schedule_file(text, word);
  });
}

std::string words_about(const Token& token, const zero_epilogue::ScheduleRun& run,
                        const std::vector<Event>& named) {
  std::string words;
  if (token.rules != zero_epilogue::rules_hash()) {
    words = named.empty() ? "made under other rules; its choices were read under these"
                          : "made under other rules; the nearest schedule was run";
  }
  if (run.first_changed) {
    words += fmt::format("{}event {} had to change: {} of rank {}", words.empty() ? "" : "; ",
                         *run.first_changed + 1,
                         zero_epilogue::event_word(named[*run.first_changed].what),
                         named[*run.first_changed].rank);
  }
  const bool is_as_said = run.violated == token.expected && run.events.size() == token.events;
  return fmt::format("{}{}{}", words, words.empty() ? "" : "; ",
                     is_as_said ? "as it says"
                                : fmt::format("it says {} after {} events",
                                              property_name(token.expected), token.events));
}

// What a schedule has to keep to fail as this one does.
void add_constraints(const Settings& settings, const Counterexample& example,
                     ZeroEpilogueFinding& finding) {
  const auto ranks = zero_epilogue::Ranks::make(settings);
  if (!ranks) return;
  const auto least = zero_epilogue::least_constraints(*ranks, example);
  if (!least) return;
  finding.is_least = least->is_least;
  finding.constraints.emplace();
  for (const zero_epilogue::OrderConstraint& one : least->constraints)
    finding.constraints->push_back(constraint_text(settings, one));
}

}  // namespace

ZeroEpilogueFinding finding_of(const Settings& settings, const Counterexample& example) {
  ZeroEpilogueFinding finding{.property = example.property,
                              .events = example.events.size(),
                              .events_found = example.events.size(),
                              .settings = settings_text(settings),
                              .steps = in_words(RankRules(settings), example.events)};
  const Token token = token_of(settings, example.property, example.events);
  finding.token = token_text(token);
  finding.file = zero_epilogue::schedule_file_text({token, example.events});
  add_constraints(settings, example, finding);
  return finding;
}

ZeroEpilogueFinding minimized_finding(const Settings& settings, const Counterexample& example,
                                      const ZeroEpilogueOptions& options) {
  if (!options.minimizes && !options.minimizes_settings) return finding_of(settings, example);
  const auto shrunk = shrink(
      settings, example, {.shrinks_settings = options.minimizes_settings, .executions = 20'000});
  ZeroEpilogueFinding finding = finding_of(shrunk.settings, shrunk.counterexample);
  finding.events_found = example.events.size();
  return finding;
}

bool is_zero_epilogue_word(const std::string& word) {
  return zero_epilogue::is_token_text(word) || word.ends_with(".zpe");
}

Result<ZeroEpilogueReplay> replay_zero_epilogue(const std::string& word) {
  const auto saved = read(word);
  if (!saved) return tl::unexpected(saved.error());
  const Token& token = saved->token;
  const RankRules rules(token.settings);
  auto run = saved->events.empty()
                 ? zero_epilogue::replay(token)
                 : Result<zero_epilogue::ScheduleRun>(zero_epilogue::run_leniently(
                       rules, saved->events, zero_epilogue::AtEnd::run_on));
  if (!run) return tl::unexpected(run.error());
  ZeroEpilogueReplay replay;
  replay.report = {.settings = settings_text(token.settings),
                   .scheduler = "replay:" + word,
                   .transitions = run->events.size(),
                   .schedules = "1",
                   .replayed = words_about(token, *run, saved->events)};
  replay.is_reproduced = run->violated == token.expected && run->events.size() == token.events &&
                         token.rules == zero_epilogue::rules_hash() && !run->first_changed;
  if (run->violated != zero_epilogue::Property::none) {
    replay.report.findings.push_back(finding_of(token.settings, {run->violated, run->events}));
  }
  return replay;
}

}  // namespace zeroproof
