#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "props/mutation/score/corpus.h"
#include "props/mutation/score/mutant_table.h"

namespace zeroproof::mutation {

enum class MutantVerdict : std::uint8_t {
  killed,
  survived,   // every run that reaches it held
  unreached,  // no run of the corpus comes to its place
};

struct ScoreOptions {
  std::size_t sample = 0;       // of all mutants, evenly spread; 0: all
  std::size_t runs_max = 60;    // of one mutant
  unsigned limit_seconds = 30;  // of one mutant; then it counts as killed by the limit
  std::size_t workers = 1;      // processes
  std::function<bool()> should_stop = {};
  std::function<void(std::size_t mutants, std::size_t killed)> on_progress = {};
};

struct MutantResult {
  const StatementMutant* mutant = nullptr;  // static
  MutantVerdict verdict = MutantVerdict::unreached;
  std::string by;        // "P26", or how its process ended: "crash", "time limit"
  std::size_t runs = 0;  // that reach it and were tried at most
};

struct Score {
  std::vector<MutantResult> results;  // in the order of the table
  bool is_interrupted = false;

  std::size_t count(MutantVerdict verdict) const;
};

// Runs each mutant in a process of its own over the runs that reach it, the shortest first, until
// one falsifies a property.
Score score(const Corpus& corpus, const ScoreOptions& options);

}  // namespace zeroproof::mutation
