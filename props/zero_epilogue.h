#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "props/exploration_status.h"
#include "props/report/junit.h"
#include "sim/explorer.h"
#include "sim/zero_epilogue/coverage.h"
#include "sim/zero_epilogue/walker.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// `explore zero_epilogue`: the common model of the anchors, on which searches are compared.
struct ZeroEpilogueOptions {
  std::vector<std::string> words;  // "P=2", "defect=M9", ...
  std::string scheduler = "exhaustive";
  bool is_reduced = true;
  bool counts_schedules = false;
  bool minimizes = true;
  bool minimizes_settings = false;
  bool measures_coverage = false;  // of the sampling schedulers
  std::size_t workers = 1;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> executions;   // sampling: 100,000 without; dpor: no limit
  std::function<StopRequest()> should_stop;  // may be empty
  std::function<void()> on_verdict;          // the verdict is known, details follow; may be empty
};

struct ZeroEpilogueFinding {
  zero_epilogue::Property property = zero_epilogue::Property::none;
  std::uint64_t events = 0;
  bool is_shortest = false;        // certified by a breadth-first search
  std::uint64_t events_found = 0;  // as a sampling scheduler or DPOR met it
  std::string settings;            // of the counterexample
  std::vector<std::string> steps;  // in words
  // The orders that make it fail, in words; absent where they were not looked for, or too many
  // states were met.
  std::optional<std::vector<std::string>> constraints;
  bool is_least = false;  // no fewer constraints do
  std::string token;      // sim/zero_epilogue/token.h; empty when there are no events
  std::string file;       // the same with its events by name (*.zpe)
};

struct ZeroEpilogueCoverage {
  zero_epilogue::CoverageCounts counts;
  std::vector<zero_epilogue::Probe> probes;
  std::vector<std::uint64_t> growth;  // states after each tenth of the schedules
  // A condition that so many schedules did not meet.
  bool has_missed_probe() const;
};

struct ZeroEpilogueReport {
  std::string settings;
  std::string defect;  // one sentence; empty without a defect
  std::string scheduler;
  bool is_reduced = false;
  std::optional<std::uint64_t> states;
  std::optional<std::uint64_t> transitions;
  std::optional<std::string> schedules;  // run, or how many there are; decimal
  std::optional<std::uint64_t> classes;  // distinct happens-before classes among them
  std::optional<double> bytes_per_state;
  std::optional<PctCertificate> pct;
  std::optional<std::uint64_t> pct_own_steps;  // k of the same, without the completions
  std::optional<ZeroEpilogueCoverage> coverage;
  // By property A1 to A5, of the uniform random walk; empty unless schedules were counted.
  std::vector<double> probabilities;
  // The first gives the verdict. Exhaustive and dpor: all properties that can be violated; the
  // sampling schedulers: what the first failing schedule violated.
  std::vector<ZeroEpilogueFinding> findings;
  std::string replayed;  // what a replay says about its token; empty without one
  StopRequest stopped = StopRequest::none;
  bool is_complete = true;  // the scheduler did all that it was to do
};

// Code usage for wrong words and for instances that do not fit.
Result<ZeroEpilogueReport> explore_zero_epilogue(const ZeroEpilogueOptions& options);

// Runs the schedule of a token or of a *.zpe file once; `is_reproduced` is false when it is of
// other rules, or does not violate what it says. Code unreadable.
struct ZeroEpilogueReplay {
  ZeroEpilogueReport report;
  bool is_reproduced = true;
};
Result<ZeroEpilogueReplay> replay_zero_epilogue(const std::string& word);
bool is_zero_epilogue_word(const std::string& word);  // a token, or a path that ends in .zpe

ExplorationStatus status_of(const ZeroEpilogueReport& report);

// `seconds` comes from the caller: only the command reads a clock.
struct ZeroEpilogueTimes {
  double verdict = 0;
  double all = 0;
};
std::string zero_epilogue_json(const ZeroEpilogueReport& report, std::uint64_t seed,
                               const ZeroEpilogueTimes& seconds);
std::string zero_epilogue_text(const ZeroEpilogueReport& report, const ZeroEpilogueTimes& seconds);
std::vector<JUnitCase> zero_epilogue_cases(const ZeroEpilogueReport& report);

}  // namespace zeroproof
