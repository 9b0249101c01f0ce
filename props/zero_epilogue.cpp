#include "props/zero_epilogue.h"

#include <fmt/format.h>

#include <charconv>

#include "sim/zero_epilogue/full_search.h"
#include "sim/zero_epilogue/path_counts.h"
#include "sim/zero_epilogue/reduced_search.h"

namespace zeroproof {
namespace {

using zero_epilogue::Counterexample;
using zero_epilogue::Defect;
using zero_epilogue::defect_sentence;
using zero_epilogue::Event;
using zero_epilogue::FullResult;
using zero_epilogue::kProperties;
using zero_epilogue::kRanksMax;
using zero_epilogue::parse_settings;
using zero_epilogue::PathCounts;
using zero_epilogue::Property;
using zero_epilogue::RankRules;
using zero_epilogue::Ranks;
using zero_epilogue::RankState;
using zero_epilogue::ReducedResult;
using zero_epilogue::search_all;
using zero_epilogue::Settings;
using zero_epilogue::settings_text;
using zero_epilogue::Until;
using zero_epilogue::walk;
using zero_epilogue::WalkKind;
using zero_epilogue::WalkOptions;

double quotient(std::uint64_t value, std::uint64_t by) {
  return by == 0 ? 0 : static_cast<double>(value) / static_cast<double>(by);
}

// The events in words. What a collective is called depends on the state before it.
std::vector<std::string> in_words(const RankRules& rules, const std::vector<Event>& events) {
  std::vector<RankState> states(kRanksMax);
  std::vector<std::string> steps;
  for (const Event& event : events) {
    RankState& state = states[event.rank];
    steps.push_back(event_text(event, state));
    rules.step(state, event.what);
  }
  return steps;
}

void search_fully(const Ranks& ranks, const FullResult& found, ZeroEpilogueReport& report) {
  report.states = found.counts.states;
  report.transitions = found.counts.transitions;
  report.bytes_per_state = quotient(found.counts.store_bytes, found.counts.states);
  report.property = found.findings.first();
  report.is_shortest = true;
  if (!report.property) return;
  report.events = found.findings.least_events(*report.property);
  // The events themselves come from the reduced search, which has to find as few of them.
  for (const Counterexample& one : search_reduced(ranks).counterexamples) {
    if (one.property == report.property && one.events.size() == report.events) {
      report.steps = in_words(ranks.rules(), one.events);
    }
  }
}

void search_with_reduction(const Ranks& ranks, ZeroEpilogueReport& report) {
  const ReducedResult found = search_reduced(ranks, Until::first_finding);
  report.states = found.counts.states;
  report.transitions = found.counts.transitions;
  report.bytes_per_state = quotient(found.counts.store_bytes, found.counts.states);
  report.property = found.findings.first();
  report.is_shortest = true;
  if (found.counterexamples.empty()) return;
  report.events = found.counterexamples.front().events.size();
  report.steps = in_words(ranks.rules(), found.counterexamples.front().events);
}

Result<void> count_schedules(const Ranks& ranks, ZeroEpilogueReport& report) {
  const auto counts = PathCounts::make(ranks);
  if (!counts) return tl::unexpected(counts.error());
  const OrderCount schedules = counts->schedules();
  report.schedules = schedules.has_overflowed() ? fmt::format("{:.6g}", counts->approximately())
                                                : schedules.text();
  for (std::size_t i = 1; i < kProperties; ++i) {
    report.probabilities.push_back(counts->probability(static_cast<Property>(i)));
  }
  return {};
}

Result<void> search(const Settings& settings, const ZeroEpilogueOptions& options,
                    ZeroEpilogueReport& report) {
  const auto ranks = Ranks::make(settings);
  if (!ranks) return tl::unexpected(ranks.error());
  if (options.is_reduced) {
    search_with_reduction(*ranks, report);
  } else {
    const auto found = search_all(*ranks, options.workers);
    if (!found) return tl::unexpected(found.error());
    search_fully(*ranks, *found, report);
  }
  return options.counts_schedules ? count_schedules(*ranks, report) : Result<void>{};
}

Result<WalkOptions> walk_options(const ZeroEpilogueOptions& options) {
  WalkOptions walk{.seed = options.seed, .schedules = options.schedules};
  const std::string_view name = options.scheduler;
  if (name == "random") return walk;
  if (name == "novelty") {
    walk.kind = WalkKind::novelty;
    return walk;
  }
  walk.kind = WalkKind::pct;
  const std::string_view depth = name.starts_with("pct:") ? name.substr(4) : "";
  const auto [end, error] = std::from_chars(depth.data(), depth.data() + depth.size(), walk.depth);
  const bool is_number = error == std::errc() && end == depth.data() + depth.size();
  if (is_number && walk.depth >= 1 && walk.depth <= 16) return walk;
  return fail(ErrorCode::usage,
              fmt::format("--scheduler {}: zero_epilogue knows exhaustive, random, novelty and "
                          "pct:D with D from 1 to 16",
                          name));
}

Result<void> sample(const Settings& settings, const ZeroEpilogueOptions& options,
                    ZeroEpilogueReport& report) {
  const auto walking = walk_options(options);
  if (!walking) return tl::unexpected(walking.error());
  const auto found = walk(settings, *walking);
  if (!found) return tl::unexpected(found.error());
  report.schedules = std::to_string(found->schedules);
  report.transitions = found->events;
  report.pct = found->pct;
  report.property = found->first;
  report.events = found->failing.size();
  report.steps = in_words(RankRules(settings), found->failing);
  return {};
}

}  // namespace

Result<ZeroEpilogueReport> explore_zero_epilogue(const ZeroEpilogueOptions& options) {
  const auto settings = parse_settings(options.words);
  if (!settings) return tl::unexpected(settings.error());
  ZeroEpilogueReport report{.settings = settings_text(*settings), .scheduler = options.scheduler};
  if (settings->defect != Defect::none) report.defect = defect_sentence(settings->defect);
  const bool is_search = options.scheduler == "exhaustive";
  report.is_reduced = is_search && options.is_reduced;
  auto done = is_search ? search(*settings, options, report) : sample(*settings, options, report);
  if (!done) return tl::unexpected(done.error());
  return report;
}

}  // namespace zeroproof
