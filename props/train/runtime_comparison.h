#pragma once

#include <cstdint>
#include <string>

#include "props/train/engine_case.h"

namespace zeroproof::train {

// Of what all ranks of a run computed, bit for bit.
Fingerprint values_of(const CellRun& run);

// One execution in the simulated world beside one on host threads whose nodes ran in its order.
struct RuntimeComparison {
  std::uint64_t tokens = 0;        // of all ranks, in the simulated world
  std::uint64_t values = 0;        // numbers of all ranks
  std::uint64_t node_choices = 0;  // that the host run followed
  CellRun simulated;
  std::string difference;  // the first one, one line; empty when all agree
};

// Order tokens and every number of every rank, bit for bit (no numbers where a case is judged by
// events: collecting them takes collectives). ExecutionCut passes through. A program
// that deadlocks would hang on the host: then only the simulated run takes place, and
// `difference` says so.
RuntimeComparison compare_runtimes(const EngineCase& engine_case, Chooser& chooser);

}  // namespace zeroproof::train
