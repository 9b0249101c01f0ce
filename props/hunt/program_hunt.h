#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "props/hunt/activity.h"
#include "props/hunt/mutant.h"
#include "props/hunt/program_case.h"
#include "props/program/source.h"

namespace zeroproof::hunt {

// A program, and the source as it stands after it: each run goes on from a copy.
struct DrawnProgram {
  program::Source source;
  std::unique_ptr<ProgramCase> program;  // null: it is none
  std::string problem;                   // why
};

// What is no program is none by its contract, or for the reference.
DrawnProgram draw_case(program::Source source);
// Of the source that case `number` is drawn from.
std::uint64_t case_seed(std::uint64_t seed, std::uint64_t number);

struct ProgramHuntOptions {
  std::uint64_t seed = 0;
  std::uint64_t cases_max = 20'000;           // of one fault
  std::int64_t time_max_ns = 20'000'000'000;  // of one fault
  bool minimizes = true;
  std::size_t shrink_runs = 2'000;
  // Whether every relation that speaks of a program judges it; or one of them in some cases.
  bool has_all_relations = false;
  // Whether Activity counts where a relation would speak: each then makes its other program.
  bool counts_relations = false;
  std::optional<ProgramJudge> judge = std::nullopt;  // it alone
  // Where programs come from; with a fixed program no choice is drawn, and only its orders differ.
  std::function<DrawnProgram(program::Source)> draw = draw_case;
};

// A program with one order of one of its runs, as the choices that both are drawn from.
struct ProgramCounterexample {
  std::vector<std::uint32_t> values;
  ProgramJudge judge = {};
};

// What became of the hunt for one fault; of a finding of the unmutated engine, where `fault` is
// null.
struct ProgramFound {
  const Mutant* fault = nullptr;  // outlives it
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

// A counterexample that ran again.
struct ProgramReplay {
  CaseResult result;
  std::string text;  // the program
};

// Draws programs by their numbers, the same for all faults, and judges them. Not thread-safe.
class ProgramHunter {
 public:
  ProgramHunter(const ProgramHuntOptions& options, ProgramHuntWatch watch)
      : options_(options), watch_(std::move(watch)) {}

  ProgramFound hunt(const Mutant& fault);

  struct Unmutated {
    std::uint64_t cases = 0;
    std::uint64_t executions = 0;
    double seconds = 0.0;
    reference::Coverage coverage;  // of the walkers
    Activity activity;
  };
  // Cases from `first` on for so long, or so many; `on_finding` gets each finding, minimised, once
  // a property and program text.
  Unmutated run_unmutated(std::uint64_t first, std::uint64_t cases_max, std::int64_t time_max_ns,
                          const std::function<void(const ProgramFound&)>& on_finding);

 private:
  // One run and what it falsified; the source as it stands after it.
  struct JudgedRun {
    ProgramJudge judge;
    CaseResult result;
    program::Source source;
  };

  DrawnProgram& at(std::uint64_t number);
  std::vector<JudgedRun> judge(DrawnProgram& drawn, std::uint64_t number,
                               const program::EngineVariant& variant, Depth depth) const;
  std::vector<const relations::Relation*> relations_of(const DrawnProgram& drawn,
                                                       std::uint64_t number) const;
  static const Falsified* falsified_by(const JudgedRun& run, const Mutant& fault);
  void finish(ProgramFound& found);
  std::optional<ProgramReplay> replay_of(const ProgramCounterexample& counterexample,
                                         const program::EngineVariant& variant) const;

  ProgramHuntOptions options_;
  ProgramHuntWatch watch_;
  std::map<std::uint64_t, DrawnProgram> pool_;
};

// Runs a counterexample again. Null fault: the unmutated engine. None where the values are drawn
// as no program.
std::optional<ProgramReplay> replay(const ProgramCounterexample& counterexample,
                                    const Mutant* fault);
std::optional<ProgramReplay> replay(const ProgramCounterexample& counterexample,
                                    const program::EngineVariant& variant);

// "zps1:program/A01:…", and back.
std::string token_of(const ProgramCounterexample& counterexample, std::string_view id);
// Of its fault, or "unmutated".
std::string token_of(const ProgramFound& found);
Result<ProgramCounterexample> read_program_token(std::string_view text, std::string_view where);

}  // namespace zeroproof::hunt
