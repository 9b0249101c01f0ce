#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "props/hunt/program_hunt.h"
#include "props/program/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof::hunt {

inline constexpr std::string_view kCorpusSchema = "zeroproof.program_corpus/1";

// A counterexample that outlives changes of the grammar: the program itself, and the choices of one
// of its runs. A document of schema kCorpusSchema.
struct CorpusEntry {
  std::string fault;     // its id; empty: the unmutated engine, which holds there again
  std::string property;  // the number of the one that was falsified
  ProgramJudge judge = {};
  std::vector<std::uint32_t> schedule;
  program::Program program;
};

// Errors: the choices are drawn as no program.
Result<CorpusEntry> corpus_entry_of(const ProgramFound& found);

std::string corpus_json(const CorpusEntry& entry);
Result<CorpusEntry> parse_corpus_entry(std::string_view json, std::string_view where);

// A program that is judged in the order that an entry says.
class CorpusCase {
 public:
  // An error as Contract::of; or the reference refuses the program.
  static Result<CorpusCase> make(const CorpusEntry& entry);

  CaseResult run(const program::EngineVariant& variant) const;
  // Runs it once more and writes what the ranks of its last world do: hooktrace files as
  // train::RankTraces does, whose paths it returns by rank. Of a relation the first program.
  Result<std::vector<std::string>> record(const program::EngineVariant& variant,
                                          const std::string& path) const;
  const program::RunnableProgram& runnable() const { return program_->runnable(); }

 private:
  CorpusCase(std::unique_ptr<ProgramCase> program, const CorpusEntry& entry);

  std::unique_ptr<ProgramCase> program_;
  ProgramJudge judge_;
  std::vector<std::uint32_t> schedule_;
};

}  // namespace zeroproof::hunt
