#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "props/mutation/fault.h"
#include "props/mutation/program_case.h"
#include "props/program/source.h"

namespace zeroproof::mutation {

struct ProgramHuntOptions {
  std::uint64_t seed = 0;
  std::uint64_t cases_max = 20'000;           // of one fault
  std::int64_t time_max_ns = 20'000'000'000;  // of one fault
  bool minimizes = true;
  std::size_t shrink_runs = 2'000;
};

// A program, and the source as it stands after it: each run goes on from a copy.
struct DrawnProgram {
  program::Source source;
  std::unique_ptr<ProgramCase> program;  // null: it is none
  std::string problem;                   // why
};

// A program with one order of one of its two runs, as the choices that both are drawn from.
struct ProgramCounterexample {
  std::vector<std::uint32_t> values;
  bool is_of_events = false;
};

// What became of the hunt for one fault; of a finding of the unmutated engine, where `fault` is
// null.
struct ProgramFound {
  const Fault* fault = nullptr;  // static
  bool is_found = false;
  const Property* property = nullptr;  // static
  std::string finding;
  std::uint64_t case_number = 0;
  std::uint64_t executions = 0;
  double seconds = 0.0;
  ProgramCounterexample counterexample;  // minimised, if asked for
  std::size_t choices_before = 0;        // of the program, before
  std::size_t shrink_runs = 0;
};

// Called by the hunt.
struct ProgramHuntWatch {
  std::function<std::int64_t()> now_ns;  // monotonic; never empty
  std::function<bool()> should_stop = {};
};

// Draws programs by their numbers, the same for all faults, and judges them. Not thread-safe.
class ProgramHunter {
 public:
  ProgramHunter(const ProgramHuntOptions& options, ProgramHuntWatch watch)
      : options_(options), watch_(std::move(watch)) {}

  ProgramFound hunt(const Fault& fault);

  struct Unmutated {
    std::uint64_t cases = 0;
    std::uint64_t executions = 0;
    double seconds = 0.0;
    reference::Coverage coverage;  // of the walkers
  };
  // Cases from `first` on for so long, or so many; `on_finding` gets each finding, minimised, once
  // a property and program text.
  Unmutated run_unmutated(std::uint64_t first, std::uint64_t cases_max, std::int64_t time_max_ns,
                          const std::function<void(const ProgramFound&)>& on_finding);

 private:
  DrawnProgram& at(std::uint64_t number);
  CaseResult judge(DrawnProgram& drawn, const Fault* fault, CaseRun::Depth depth,
                   program::Choices (&made)[2]);
  void finish(ProgramFound& found);

  ProgramHuntOptions options_;
  ProgramHuntWatch watch_;
  std::map<std::uint64_t, DrawnProgram> pool_;
};

// Runs a counterexample again. Null fault: the unmutated engine. None where the values are drawn
// as no program.
struct ProgramReplay {
  CaseResult result;
  std::string text;  // the program
};
std::optional<ProgramReplay> replay(const ProgramCounterexample& counterexample,
                                    const Fault* fault);

// "zps1:program/A01:…", and back.
std::string token_of(const ProgramCounterexample& counterexample, std::string_view id);
Result<ProgramCounterexample> read_program_token(std::string_view text, std::string_view where);

}  // namespace zeroproof::mutation
