#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "props/hunt/program_case.h"
#include "zeroproof/internal/model/choice.h"
#include "zeroproof/model/result.h"

namespace zeroproof::mutation {

// One run of one case, which holds on the unmutated engine.
struct CorpusRun {
  std::string name;                            // a file, or "case 7"
  std::shared_ptr<hunt::ProgramCase> program;  // its reference is known
  hunt::ProgramJudge judge = {};
  std::vector<std::uint32_t> schedule;
  std::vector<unsigned char> reached;  // by number of a mutant: whether it asks
  double seconds = 0.0;
};

struct Corpus {
  std::vector<CorpusRun> runs;
  std::vector<std::string> dropped;  // what does not hold on the unmutated engine
};

// The entries of files as `zeroproof mutation --write-corpus` writes them, then
// `random_cases` drawn programs in both of their runs. `say`: after each run.
Result<Corpus> make_corpus(const std::vector<std::string>& files, std::uint64_t random_cases,
                           std::uint64_t seed, const std::function<void(std::size_t runs)>& say);

// The run once more, with a mutant; 0: with none. What it falsifies first, if anything.
std::optional<hunt::Falsified> run_mutant(const CorpusRun& run, int mutant);

}  // namespace zeroproof::mutation
