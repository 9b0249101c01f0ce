#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "props/cli/common_flags.h"
#include "props/cli/exit_code.h"
#include "props/cli/flags.h"
#include "props/cli/output.h"
#include "props/report/junit.h"
#include "props/report/located_finding.h"
#include "props/report/palette.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// What a verb runs in. Lives as long as the process.
struct Session {
  CommonFlags common;
  std::string program;     // how the command was called, quoted for a shell
  std::string arguments;   // what followed, quoted
  Palette palette;         // of stdout
  TerminalFacts terminal;  // of stdout
  Output out{1};

  // One line on stderr.
  void say(std::string_view text) const;

  // "seed 7": the first line of every run.
  std::string seed_line() const;

  // The last line of a failure: this very command; empty when the run held.
  std::string reproduce_line(ExitCode code) const;
};

// What a verb found. Only the form that was asked for is made.
struct VerbResult {
  ExitCode code = ExitCode::held;
  std::function<std::string()> text;  // empty: written already
  std::function<std::string()> json;  // one document, without a line end
  std::function<std::vector<JUnitCase>()> junit;
  std::function<LocatedFindings()> findings;  // for SARIF and annotations
  bool has_written_out = false;               // what --out asks for is there already
  std::string next = {};                      // after a run that held: a command to try, or empty
};

// One verb: declares its flags, then runs once.
class Verb {
 public:
  virtual ~Verb() = default;
  virtual void declare(Flags& flags) = 0;
  virtual Result<VerbResult> run(Session& session) = 0;
};

struct VerbInfo {
  std::string_view name;
  std::string_view summary;   // one sentence
  std::string_view examples;  // whole lines, two or three
  // Null: the program beside this one has the verb (sibling.h).
  std::unique_ptr<Verb> (*make)() = nullptr;
};

// Which of the two programs this is: each has verbs of its own.
struct ProgramInfo {
  std::string_view name;
  std::string_view about;  // whole lines
};
const ProgramInfo& program_info();

// The verb that hunts faults, and what it was called before.
inline constexpr std::string_view kMutation = "mutation";
inline constexpr std::string_view kFormerMutation = "museum";

// In the order of the help page. Static.
std::span<const VerbInfo> verb_table();

// Null when no verb has that name.
const VerbInfo* find_verb(std::string_view name);

// The verb's own flags, then the common ones.
class VerbCall {
 public:
  explicit VerbCall(const VerbInfo& info);

  Flags& flags() { return flags_; }
  Verb& verb() { return *verb_; }
  Result<CommonFlags> common() const { return words_.values(); }

 private:
  std::unique_ptr<Verb> verb_;
  CommonFlagWords words_;
  Flags flags_;
};

// One factory per verb file.
std::unique_ptr<Verb> make_verify();
std::unique_ptr<Verb> make_replay();
std::unique_ptr<Verb> make_explore();
std::unique_ptr<Verb> make_list();
std::unique_ptr<Verb> make_show();
std::unique_ptr<Verb> make_diff();
std::unique_ptr<Verb> make_convert();
std::unique_ptr<Verb> make_doctor();
std::unique_ptr<Verb> make_completion();
std::unique_ptr<Verb> make_conform();
std::unique_ptr<Verb> make_train();
std::unique_ptr<Verb> make_record();
std::unique_ptr<Verb> make_export();
std::unique_ptr<Verb> make_generate();
std::unique_ptr<Verb> make_bisect();
std::unique_ptr<Verb> make_hunt();
std::unique_ptr<Verb> make_checkpoint();
std::unique_ptr<Verb> make_watch();

}  // namespace zeroproof
