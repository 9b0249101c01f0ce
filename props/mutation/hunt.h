#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/mutation/case_run.h"
#include "props/mutation/fault.h"
#include "sim/schedule.h"

namespace zeroproof::mutation {

struct HuntOptions {
  std::uint64_t seed = 0;
  std::uint64_t workers = 1;                  // threads; what is found does not depend on them
  std::uint64_t cases_max = 20'000;           // of one fault
  std::int64_t time_max_ns = 60'000'000'000;  // of one fault
  std::uint64_t unmutated_cases = 200;        // of the unmutated engine
  std::int64_t unmutated_time_ns = 0;         // goes on as long; 0: as many cases as that
  bool minimizes = true;
  bool has_matrix = false;  // every property that a fault falsifies in any of many cases
  // Numbers of properties that are not judged; then any of the others finds a fault.
  std::set<std::string> without;
};

// A case with one order of one of its two runs: enough to run it again.
struct Counterexample {
  train::CaseSpec spec;
  bool is_of_events = false;  // the run that judges events, and not the one that compares values
  Choices choices;
};

// Whether it has at most the ranks and parameters of the catalogue's smallest configuration, as far
// as that says how many.
bool is_within(const Counterexample& counterexample, const CatalogueRow& smallest);

// What became of the hunt for one fault.
struct Found {
  const Fault* fault = nullptr;  // static
  bool is_found = false;
  const Property* property = nullptr;  // that was falsified
  std::string text;
  std::uint64_t first_case = 0;      // its number
  std::uint64_t executions = 0;      // until it was found
  double seconds = 0.0;              // the same
  std::uint64_t shrink_runs = 0;     // that minimising took
  Counterexample counterexample;     // minimised
  std::uint64_t events = 0;          // of its run
  bool replay_ok = false;            // the counterexample shows the property again
  bool unmutated_replay_ok = false;  // and nothing at all on the unmutated engine
  std::set<std::string>
      falsified;  // numbers; of the counterexample, and with the matrix of more cases
};

// What the unmutated engine showed.
struct UnmutatedRun {
  std::uint64_t cases = 0;
  std::uint64_t executions = 0;
  double seconds = 0.0;
  std::vector<std::string> findings;  // one line each, with the case; none is right

  bool is_clean() const { return findings.empty(); }
};

struct HuntReport {
  HuntOptions options;
  std::vector<Found> found;  // in the order that was asked for
  Found canary;
  UnmutatedRun unmutated;
  bool is_interrupted = false;

  std::size_t count_found() const;
  // All that are modelled are found, the canary too, and the unmutated engine shows nothing.
  bool is_good() const;
};

// Called by any worker, the last two by one at a time.
struct HuntWatch {
  std::function<std::int64_t()> now_ns;  // monotonic; never empty
  std::function<bool()> should_stop = {};
  std::function<void(const std::string& step, std::uint64_t executions)> on_progress = {};
  // What the unmutated engine shows, as soon as it does: see UnmutatedRun::findings.
  std::function<void(const std::string& finding)> on_unmutated_finding = {};
};

// Hunts each of the faults, the canary, and the unmutated engine's findings, with the same seeds,
// cases and judges for all.
HuntReport hunt(const std::vector<const Fault*>& faults, const HuntOptions& options,
                const HuntWatch& watch);

// What verify hunts: the modelled faults of tier 1, with few cases each and nothing minimised.
std::vector<const Fault*> quick_set();
HuntOptions quick_options();

// One counterexample again, with the fault's fault or without (null).
CaseResult replay(const Counterexample& counterexample, const Fault* fault);

// "zps1:mutation/A01:…", and back.
std::string token_of(const Counterexample& counterexample, std::string_view id);
struct ReadToken {
  std::string id;
  Counterexample counterexample;
};
Result<ReadToken> read_token(std::string_view text, std::string_view where);

}  // namespace zeroproof::mutation
