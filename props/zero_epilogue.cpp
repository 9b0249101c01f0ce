#include "props/zero_epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "props/zero_epilogue_finding.h"
#include "sim/zero_epilogue/dpor_search.h"
#include "sim/zero_epilogue/full_search.h"
#include "sim/zero_epilogue/path_counts.h"
#include "sim/zero_epilogue/reduced_search.h"

namespace zeroproof {
namespace {

using zero_epilogue::Counterexample;
using zero_epilogue::Coverage;
using zero_epilogue::Defect;
using zero_epilogue::defect_sentence;
using zero_epilogue::DporResult;
using zero_epilogue::Event;
using zero_epilogue::kProperties;
using zero_epilogue::parse_settings;
using zero_epilogue::PathCounts;
using zero_epilogue::Property;
using zero_epilogue::Ranks;
using zero_epilogue::ReducedResult;
using zero_epilogue::search_all;
using zero_epilogue::search_dpor;
using zero_epilogue::search_reduced;
using zero_epilogue::Settings;
using zero_epilogue::settings_text;
using zero_epilogue::Until;
using zero_epilogue::walk;
using zero_epilogue::WalkKind;
using zero_epilogue::WalkOptions;

double quotient(std::uint64_t value, std::uint64_t by) {
  return by == 0 ? 0 : static_cast<double>(value) / static_cast<double>(by);
}

std::function<bool()> stop_of(const ZeroEpilogueOptions& options, ZeroEpilogueReport& report) {
  return [&options, &report] {
    if (report.stopped == StopRequest::none && options.should_stop) {
      report.stopped = options.should_stop();
    }
    return report.stopped != StopRequest::none;
  };
}

void note_verdict(const ZeroEpilogueOptions& options) {
  if (options.on_verdict) options.on_verdict();
}

// One a property, that of the verdict first.
void add_findings(const Ranks& ranks, const ReducedResult& found, std::optional<Property> first,
                  ZeroEpilogueReport& report) {
  for (const Counterexample& one : found.counterexamples) {
    ZeroEpilogueFinding finding = finding_of(ranks.rules().settings(), one);
    finding.is_shortest = true;
    const bool is_first = one.property == first;
    report.findings.insert(is_first ? report.findings.begin() : report.findings.end(),
                           std::move(finding));
  }
}

Result<void> search_fully(const Ranks& ranks, const ZeroEpilogueOptions& options,
                          ZeroEpilogueReport& report) {
  const auto should_stop = stop_of(options, report);
  const auto full = search_all(ranks, options.workers, should_stop);
  if (!full) return tl::unexpected(full.error());
  note_verdict(options);
  report.states = full->counts.states;
  report.transitions = full->counts.transitions;
  report.bytes_per_state = quotient(full->counts.store_bytes, full->counts.states);
  report.is_complete = full->counts.has_exhausted;
  if (full->findings.is_empty()) return {};
  // The events themselves come from the reduced search, which has to find as few of them.
  ReducedResult reduced = search_reduced(ranks);
  std::erase_if(reduced.counterexamples, [&](const Counterexample& one) {
    return full->findings.least_events(one.property) != one.events.size();
  });
  add_findings(ranks, reduced, full->findings.first(), report);
  return {};
}

void search_with_reduction(const Ranks& ranks, const ZeroEpilogueOptions& options,
                           ZeroEpilogueReport& report) {
  const auto should_stop = stop_of(options, report);
  const ReducedResult found = search_reduced(ranks, Until::first_finding, should_stop);
  note_verdict(options);
  report.states = found.counts.states;
  report.transitions = found.counts.transitions;
  report.bytes_per_state = quotient(found.counts.store_bytes, found.counts.states);
  report.is_complete = !should_stop();
  const auto first = found.findings.first();
  if (!first) return;
  const ReducedResult all = search_reduced(ranks, Until::every_property, should_stop);
  // Interrupted: what is known already.
  add_findings(ranks, should_stop() ? found : all, first, report);
}

void search_by_dpor(const Ranks& ranks, const ZeroEpilogueOptions& options,
                    ZeroEpilogueReport& report) {
  const auto should_stop = stop_of(options, report);
  const DporResult found = search_dpor(ranks, [&](const DporCounts& counts) {
    const bool is_over = options.executions && counts.executions >= *options.executions;
    return is_over || (counts.executions % 64 == 0 && should_stop());
  });
  note_verdict(options);
  report.schedules = std::to_string(found.counts.executions);
  report.transitions = found.counts.events;
  report.classes = found.classes;
  report.is_complete = found.counts.has_exhausted;
  for (const Counterexample& one : found.counterexamples) {
    ZeroEpilogueFinding finding = minimized_finding(ranks.rules().settings(), one, options);
    const bool is_first = one.property == found.findings.first();
    report.findings.insert(is_first ? report.findings.begin() : report.findings.end(),
                           std::move(finding));
  }
}

Result<void> count_schedules(const Ranks& ranks, const ZeroEpilogueOptions& options,
                             ZeroEpilogueReport& report) {
  const auto counts = PathCounts::make(ranks, stop_of(options, report));
  if (report.stopped != StopRequest::none) {
    report.is_complete = false;
    return {};
  }
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
  if (options.scheduler == "dpor") {
    search_by_dpor(*ranks, options, report);
  } else if (options.is_reduced) {
    search_with_reduction(*ranks, options, report);
  } else if (auto done = search_fully(*ranks, options, report); !done) {
    return done;
  }
  if (options.counts_schedules && report.classes) {
    return fail(ErrorCode::usage,
                "--count-schedules: not with --scheduler dpor, which counts runs");
  }
  return options.counts_schedules ? count_schedules(*ranks, options, report) : Result<void>{};
}

Result<WalkOptions> walk_options(const ZeroEpilogueOptions& options) {
  constexpr std::uint64_t kSchedules = 100'000;
  WalkOptions walk{.seed = options.seed, .schedules = options.executions.value_or(kSchedules)};
  const std::string_view name = options.scheduler;
  if (name == "random") return walk;
  if (name == "novelty") {
    walk.kind = WalkKind::novelty;
    return walk;
  }
  if (name == "novelty:pairs") {
    walk.kind = WalkKind::pair_novelty;
    return walk;
  }
  walk.kind = WalkKind::pct;
  const std::string_view depth = name.starts_with("pct:") ? name.substr(4) : "";
  const auto [end, error] = std::from_chars(depth.data(), depth.data() + depth.size(), walk.depth);
  const bool is_number = error == std::errc() && end == depth.data() + depth.size();
  if (is_number && walk.depth >= 1 && walk.depth <= 16) return walk;
  return fail(ErrorCode::usage,
              fmt::format("--scheduler {}: zero_epilogue knows exhaustive, dpor, random, novelty, "
                          "novelty:pairs, pct:D with D from 1 to 16, and replay:TOKEN",
                          name));
}

// What is seen of an instance, schedule by schedule.
class Meter {
 public:
  Meter(Coverage coverage, std::uint64_t schedules)
      : coverage_(std::move(coverage)), schedules_(schedules) {}

  void add(const std::vector<Event>& schedule) {
    coverage_.add(schedule);
    if (++run_ * 10 >= (growth_.size() + 1) * schedules_) {
      growth_.push_back(coverage_.counts().states);
    }
  }
  ZeroEpilogueCoverage take() const { return {coverage_.counts(), coverage_.probes(), growth_}; }

 private:
  Coverage coverage_;
  std::uint64_t schedules_;
  std::uint64_t run_ = 0;
  std::vector<std::uint64_t> growth_;
};

Result<void> sample(const Settings& settings, const ZeroEpilogueOptions& options,
                    ZeroEpilogueReport& report) {
  auto walking = walk_options(options);
  if (!walking) return tl::unexpected(walking.error());
  std::optional<Ranks> ranks;
  std::optional<Meter> meter;
  if (options.measures_coverage) {
    auto made = Ranks::make(settings);
    if (!made) return tl::unexpected(made.error());
    ranks.emplace(std::move(*made));
    auto coverage = Coverage::make(*ranks);
    if (!coverage) return tl::unexpected(coverage.error());
    meter.emplace(std::move(*coverage), walking->schedules);
    walking->on_schedule = [&](const std::vector<Event>& events) { meter->add(events); };
    walking->stops_at_first_finding = false;
  }
  walking->should_stop = stop_of(options, report);
  const auto found = walk(settings, *walking);
  if (!found) return tl::unexpected(found.error());
  note_verdict(options);
  report.schedules = std::to_string(found->schedules);
  report.transitions = found->events;
  report.pct = found->pct;
  if (found->pct) report.pct_own_steps = zero_epilogue::own_events_of(settings);
  report.is_complete = !found->was_stopped;
  if (meter) report.coverage = meter->take();
  if (!found->first) return {};
  report.findings.push_back(minimized_finding(settings, {*found->first, found->failing}, options));
  return {};
}

}  // namespace

Result<ZeroEpilogueReport> explore_zero_epilogue(const ZeroEpilogueOptions& options) {
  constexpr std::string_view kReplay = "replay:";
  if (options.scheduler.starts_with(kReplay)) {
    auto replay = replay_zero_epilogue(options.scheduler.substr(kReplay.size()));
    if (!replay) return tl::unexpected(replay.error());
    return std::move(replay->report);
  }
  const auto settings = parse_settings(options.words);
  if (!settings) return tl::unexpected(settings.error());
  ZeroEpilogueReport report{.settings = settings_text(*settings), .scheduler = options.scheduler};
  if (settings->defect != Defect::none) report.defect = defect_sentence(settings->defect);
  const bool is_search = options.scheduler == "exhaustive" || options.scheduler == "dpor";
  report.is_reduced = options.scheduler == "exhaustive" && options.is_reduced;
  auto done = is_search ? search(*settings, options, report) : sample(*settings, options, report);
  if (!done) return tl::unexpected(done.error());
  return report;
}

bool ZeroEpilogueCoverage::has_missed_probe() const {
  return std::any_of(probes.begin(), probes.end(),
                     [](const zero_epilogue::Probe& probe) { return probe.hits == 0; });
}

ExplorationStatus status_of(const ZeroEpilogueReport& report) {
  if (!report.findings.empty()) return ExplorationStatus::falsified;
  if (report.stopped == StopRequest::interrupted) return ExplorationStatus::interrupted;
  const bool is_search = report.states.has_value() || report.classes.has_value();
  const bool has_missed = report.coverage && report.coverage->has_missed_probe();
  const bool is_short = !report.is_complete && is_search;
  return is_short || has_missed ? ExplorationStatus::inconclusive : ExplorationStatus::held;
}

}  // namespace zeroproof
