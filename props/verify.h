#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "props/conform/conform.h"
#include "props/exploration.h"
#include "props/mutation_row.h"
#include "props/replay/replay.h"
#include "props/train/engine_exploration.h"
#include "props/train/matrix.h"

namespace zeroproof {

struct VerifyOptions {
  bool is_quick = false;      // exact at N = 4 only, upstream in one mode and order model
  std::string traces_folder;  // the bundled traces, with expected.json
  std::uint64_t seed = 0;
};

struct VerifyWatch {
  std::function<void(const std::string&)> on_step;  // what comes next
  std::function<bool()> should_stop;
  std::function<Result<MutationRow>()> hunt;  // for faults in the engine; empty: it is left out
};

// Property numbers that each trace falsifies, by its path below the folder. The bundled traces
// record upstream DeepSpeed, whose known defects are findings, not failures.
using ExpectedFindings = std::map<std::string, std::vector<std::string>>;

// Reads FOLDER/expected.json.
Result<ExpectedFindings> read_expected_findings(const std::string& folder);

// One line for each way in which the replay differs from what is expected: a fault, a level that
// disagrees, a finding too many or too few.
std::vector<std::string> unexpected_lines(const ReplayReport& report, const std::string& folder,
                                          const ExpectedFindings& expected);

// Explorations with one mode, order model and N: a table.
using ExplorationTable = std::vector<ExplorationReport>;

using EngineReports = std::vector<train::EngineExplorationReport>;

// No order showed anything, nor went another way when it was run again.
bool has_held(const train::EngineExplorationReport& report);

// What `./zp verify` checks, in one report.
struct VerifyReport {
  VerifyOptions options;
  ReplayReport replay;
  std::vector<std::string> unexpected;
  std::size_t expected_findings = 0;       // traces whose known findings were found again
  ConformReport conform;                   // the recorded PyTorch programs among the traces
  ConformReport deepspeed;                 // the recorded training runs, by our engine
  train::MatrixReport training;            // our engine against the unsharded baseline
  EngineReports engine;                    // our engine in the simulated world, in some orders
  std::vector<ExplorationReport> exact;    // must hold
  std::vector<ExplorationTable> upstream;  // the hazards of the upstream policies
  std::vector<std::string> not_caught;     // upstream policies without any finding
  std::optional<MutationRow> mutation;     // none: it was left out
  bool is_interrupted = false;

  bool has_replay_held() const { return unexpected.empty() && !replay.traces.empty(); }
  // Also true when no trace is of a program that we have.
  bool has_conformed() const;
  bool has_deepspeed_agreed() const;
  bool has_trained() const { return training.is_good(); }
  bool has_engine_held() const;
  bool has_exact_held() const;
  bool has_rediscovered() const { return not_caught.empty(); }
  bool has_caught_faults() const { return !mutation || mutation->is_good(); }
  bool has_held() const;
};

Result<VerifyReport> verify(const VerifyOptions& options, const VerifyWatch& watch);

}  // namespace zeroproof
