#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "props/museum/entry.h"
#include "props/museum/trial.h"
#include "sim/schedule.h"

namespace zeroproof::museum {

struct HuntOptions {
  std::uint64_t seed = 0;
  std::uint64_t workers = 1;                  // threads; what is found does not depend on them
  std::uint64_t cases_max = 20'000;           // of one entry
  std::int64_t time_max_ns = 60'000'000'000;  // of one entry
  std::uint64_t healthy_cases = 200;          // of the healthy engine
  std::int64_t healthy_time_ns = 0;           // goes on as long; 0: as many cases as that
  bool minimizes = true;
  bool has_matrix = false;  // every property that an entry falsifies in any of many cases
  // Numbers of properties that are not judged; then any of the others finds an entry.
  std::set<std::string> without;
};

// A case with one order of one of its two runs: enough to run it again.
struct Specimen {
  train::CaseSpec spec;
  bool is_of_events = false;  // the run that judges events, and not the one that compares values
  Choices choices;
};

// Whether it has at most the ranks and parameters of the catalogue's smallest configuration, as far
// as that says how many.
bool is_within(const Specimen& specimen, const CatalogueRow& smallest);

// What became of the hunt for one entry.
struct Found {
  const Entry* entry = nullptr;  // static
  bool is_found = false;
  const Property* property = nullptr;  // that was falsified
  std::string text;
  std::uint64_t first_case = 0;     // its number
  std::uint64_t executions = 0;     // until it was found
  double seconds = 0.0;             // the same
  std::uint64_t shrink_runs = 0;    // that minimising took
  Specimen specimen;                // minimised
  std::uint64_t events = 0;         // of its run
  bool replay_ok = false;           // the specimen shows the property again
  bool healthy_replay_ok = false;   // and nothing at all on the healthy engine
  std::set<std::string> falsified;  // numbers; of the specimen, and with the matrix of more cases
};

// What the healthy engine showed.
struct HealthyRun {
  std::uint64_t cases = 0;
  std::uint64_t executions = 0;
  double seconds = 0.0;
  std::vector<std::string> findings;  // one line each, with the case; none is right

  bool is_clean() const { return findings.empty(); }
};

struct MuseumReport {
  HuntOptions options;
  std::vector<Found> found;  // in the order that was asked for
  Found canary;
  HealthyRun healthy;
  bool is_interrupted = false;

  std::size_t count_found() const;
  // All that are modelled are found, the canary too, and the healthy engine shows nothing.
  bool is_good() const;
};

// Called by any worker, the last two by one at a time.
struct HuntWatch {
  std::function<std::int64_t()> now_ns;  // monotonic; never empty
  std::function<bool()> should_stop = {};
  std::function<void(const std::string& step, std::uint64_t executions)> on_progress = {};
  // What the healthy engine shows, as soon as it does: see HealthyRun::findings.
  std::function<void(const std::string& finding)> on_healthy_finding = {};
};

// Hunts each of the entries, the canary, and the healthy engine's findings, with the same seeds,
// cases and judges for all.
MuseumReport hunt(const std::vector<const Entry*>& entries, const HuntOptions& options,
                  const HuntWatch& watch);

// What verify hunts: the modelled entries of tier 1, with few cases each and nothing minimised.
std::vector<const Entry*> quick_set();
HuntOptions quick_options();

// One specimen again, with the entry's fault or without (null).
TrialResult replay(const Specimen& specimen, const Entry* entry);

// "zps1:museum/A01:…", and back.
std::string token_of(const Specimen& specimen, std::string_view id);
struct ReadToken {
  std::string id;
  Specimen specimen;
};
Result<ReadToken> read_token(std::string_view text, std::string_view where);

}  // namespace zeroproof::museum
