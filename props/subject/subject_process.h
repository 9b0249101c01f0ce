#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "props/program/program.h"
#include "props/subject/child_process.h"
#include "props/subject/verdict.h"

namespace zeroproof::subject {

// How a subject is started.
struct SubjectCommand {
  std::string python = "python3";
  std::string engine;                 // a name, or package.module:make
  std::vector<std::string> settings;  // NAME=VALUE
  std::string python_path = {};       // what PYTHONPATH begins with; or empty
  std::string package_folder;         // where zeroproof_subject may be, after PYTHONPATH; or empty
  std::int64_t hello_limit_ns = 600'000'000'000;   // a library may compile its kernels
  std::int64_t answer_limit_ns = 600'000'000'000;  // the subject's own limits are shorter
};

// A verb of the package: "serve", "script". The words that follow it name the engine.
std::vector<std::string> package_words(const SubjectCommand& command,
                                       const std::vector<std::string>& verb);
std::vector<std::pair<std::string, std::string>> package_variables(const SubjectCommand& command);

// What becomes of programs that have all that a known finding needs.
enum class KnownCauses : std::uint8_t { run, skip };

// The first line of a subject.
struct Hello {
  std::string engine;
  Versions versions;         // by name
  std::string capabilities;  // a document
};

// An engine that is not ours, in processes of its own, which runs programs. A subject that died or
// did not answer is started again. Not thread-safe.
class SubjectProcess {
 public:
  // Waits for the hello. Code cannot_run: no such program, no package, another version of the
  // protocol; the text has the last lines of stderr.
  static Result<std::unique_ptr<SubjectProcess>> start(SubjectCommand command,
                                                       std::function<bool()> should_stop);
  // One that `start` has still to begin.
  SubjectProcess(SubjectCommand command, std::function<bool()> should_stop)
      : command_(std::move(command)), should_stop_(std::move(should_stop)) {}

  const SubjectCommand& command() const { return command_; }
  const Hello& hello() const { return hello_; }

  // Runs a program beside plain PyTorch; or skips one that may show a known finding. A dead subject
  // is a crash, a silent one a hang. An error: its answer is not of the protocol, or it cannot be
  // started again.
  Result<Verdict> compare(const program::Program& program,
                          KnownCauses known_causes = KnownCauses::run);

 private:
  Result<void> begin();
  Verdict trouble(ChildProcess::Outcome outcome);

  SubjectCommand command_;
  std::function<bool()> should_stop_;
  Hello hello_;
  std::unique_ptr<ChildProcess> child_;  // null: to be started
  std::uint64_t last_id_ = 0;
};

}  // namespace zeroproof::subject
