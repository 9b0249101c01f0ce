#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/hunt/corpus.h"
#include "props/report/junit.h"
#include "props/report/located_finding.h"

namespace zeroproof {

// A finding of a program on the unmutated engine.
struct ProgramFinding {
  std::string kind;  // the number of a property; "host_differs", "cuda_differs", "no_program"
  std::string text;  // one line
  std::uint64_t case_number = 0;
  std::string program;      // as text
  std::string token;        // shows it again; empty for a program that was given
  hunt::CorpusEntry entry;  // the same as a document
  std::size_t choices = 0;  // of program and order
  std::size_t choices_before = 0;
  std::size_t shrink_runs = 0;
};

// Drawn programs, or one program in many orders.
struct ProgramExploration {
  std::string subject;  // "drawn programs", or a file
  std::string judge;    // values, host, cuda
  std::uint64_t cases = 0;
  std::uint64_t executions = 0;
  std::uint64_t skipped = 0;  // more ranks than GPUs
  std::uint64_t tokens = 0;   // compared, beside another runtime
  std::uint64_t values = 0;   // the same
  double seconds = 0.0;
  std::vector<ProgramFinding> findings;
};

// For people.
std::string program_exploration_text(const ProgramExploration& exploration);
// "zeroproof.explore_programs/1" of docs/reference/output.md, without a final line end.
std::string program_exploration_json(const std::vector<ProgramExploration>& explorations,
                                     std::uint64_t seed);
std::vector<JUnitCase> program_exploration_cases(
    const std::vector<ProgramExploration>& explorations);
LocatedFindings located_findings(const std::vector<ProgramExploration>& explorations);

// What a program falsified when it ran again.
struct ProgramReplayReport {
  std::string source;   // the token or file
  std::string program;  // as text
  hunt::CaseResult result;
};
std::string program_replay_text(const ProgramReplayReport& replay);
// "zeroproof.replay_program/1".
std::string program_replay_json(const ProgramReplayReport& replay);

}  // namespace zeroproof
