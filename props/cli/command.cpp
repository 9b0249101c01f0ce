#include "props/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>

#include "engine/files/atomic_file.h"
#include "model/check.h"
#include "model/nearest_name.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/mutated_engine.h"
#include "props/cli/shell_quote.h"
#include "props/cli/sibling.h"
#include "props/cli/verb.h"
#include "props/report/annotations.h"
#include "props/report/folded_text.h"
#include "props/report/sarif.h"

namespace zeroproof {
namespace {

std::string front_page() {
  std::string page = fmt::format("usage: {} VERB [words and flags]\n\n{}\nverbs:\n",
                                 program_info().name, program_info().about);
  for (const VerbInfo& info : verb_table()) {
    page += fmt::format("  {:<12}{}\n", info.name, info.summary);
  }
  return page +
         fmt::format("\n'{0} help VERB' or '{0} VERB --help' prints flags and examples.\n",
                     program_info().name) +
         "exit codes: 0 held, 1 falsified or mismatch, 2 usage, 3 inconclusive,\n"
         "  4 nondeterminism, 5 trace unreadable, 6 internal check failed,\n"
         "  77 cannot run here, 124 time limit, 130 interrupted\n";
}

bool is_failure(ExitCode code) {
  return code == ExitCode::falsified || code == ExitCode::inconclusive ||
         code == ExitCode::nondeterminism || code == ExitCode::unreadable;
}

class Command {
 public:
  explicit Command(std::span<const char* const> arguments)
      : words_(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()) {
    program_ = arguments.empty() ? "zeroproof" : arguments.front();
    session_.program = shell_quote(program_);
    for (const std::string& word : words_) {
      session_.arguments += (session_.arguments.empty() ? "" : " ") + shell_quote(word);
    }
    session_.terminal = terminal_facts(1);
  }

  ExitCode run() {
    ExitCode code = guarded();
    session_.out.flush();
    if (session_.out.error()) {
      session_.say(*session_.out.error());
      if (code == ExitCode::held || code == ExitCode::falsified) code = ExitCode::usage;
    }
    return was_interrupted() ? ExitCode::interrupted : code;
  }

 private:
  ExitCode guarded() {
    try {
      return dispatch();
    } catch (const CheckFailed& failed) {
      session_.say(failed.what());
    } catch (const std::bad_alloc&) {
      session_.say("out of memory");
    } catch (const std::exception& unexpected) {
      session_.say(fmt::format("unexpected error: {}", unexpected.what()));
    }
    return ExitCode::internal;
  }

  ExitCode dispatch() {
    if (words_.empty()) {
      fmt::print(stderr, "{}", front_page());
      return ExitCode::usage;
    }
    if (const char* const sibling = sibling_for(words_))
      return refuse(become_sibling(sibling, program_, words_));
    const std::string first = words_.front();
    if (first == "--version") return print(fmt::format("zeroproof {}\n", ZP_VERSION));
    if (first == "--help" || first == "-h") return print(front_page());
    if (first == "help") return words_.size() < 2 ? print(front_page()) : help_of(words_[1]);
    const VerbInfo* info = find_verb(first);
    if (info == nullptr) return unknown_verb(first);
    return run_verb(*info);
  }

  ExitCode print(const std::string& text) {
    session_.out.write(text);
    return ExitCode::held;
  }

  ExitCode refuse(const Error& error) {
    session_.say(error.text);
    return exit_code_of(error.code);
  }

  ExitCode help_of(const std::string& name) {
    const VerbInfo* info = find_verb(name);
    if (info == nullptr) return unknown_verb(name);
    return print(VerbCall(*info).flags().help());
  }

  ExitCode unknown_verb(const std::string& name) {
    if (name.starts_with('-')) {
      session_.say(fmt::format("'{}' comes before the verb: write zeroproof VERB {}", name, name));
      return ExitCode::usage;
    }
    std::vector<std::string_view> known = {"help"};
    for (const VerbInfo& info : verb_table()) known.push_back(info.name);
    session_.say(fmt::format("unknown verb '{}': {}", name, did_you_mean(name, known)));
    return ExitCode::usage;
  }

  ExitCode run_verb(const VerbInfo& info) {
    VerbCall call(info);
    const auto parsed = call.flags().parse(std::span(words_).subspan(1));
    if (!parsed) return refuse(in_verb(info, parsed.error()));
    const auto common = call.common();
    if (!common) return refuse(in_verb(info, common.error()));
    if (common->wants_help) return print(call.flags().help());
    session_.common = *common;
    session_.palette = Palette(wants_color(common->color, session_.terminal));
    const auto result = call.verb().run(session_);
    return result ? publish(info, *result) : refuse(result.error());
  }

  static Error in_verb(const VerbInfo& info, const Error& error) {
    return {error.code,
            fmt::format("{}: {} (see zeroproof help {})", info.name, error.text, info.name)};
  }

  ExitCode publish(const VerbInfo& info, const VerbResult& result) {
    if (session_.common.wants_json && result.json) {
      session_.out.write(result.json() + "\n");
    } else if (result.text) {
      session_.out.write(page(result));
    }
    auto written = write_files(info, result);
    if (written) written = publish_findings(info, result);
    if (!written) return refuse(written.error());
    hint(result);
    return result.code;
  }

  // The next step of a run that held: no result, so it goes to stderr, and only beside text.
  void hint(const VerbResult& result) {
    const CommonFlags& common = session_.common;
    const bool is_wanted = !common.wants_json && common.progress != ProgressMode::none;
    if (!is_wanted || result.next.empty() || result.code != ExitCode::held || was_interrupted())
      return;
    session_.out.flush();
    fmt::print(stderr, "next: {} {}\n", session_.program, result.next);
  }

  // A failure ends with the command that shows it again, of every verb.
  std::string page(const VerbResult& result) const {
    std::string text = result.text();
    const std::size_t last = text.size() < 2 ? 0 : text.rfind('\n', text.size() - 2) + 1;
    if (is_failure(result.code) && !text.substr(last).starts_with("reproduce: "))
      text += session_.reproduce_line(result.code);
    const TerminalFacts& facts = session_.terminal;
    return facts.is_terminal ? folded_text(text, facts.columns) : text;
  }

  Result<void> write_files(const VerbInfo& info, const VerbResult& result) {
    const CommonFlags& common = session_.common;
    if (!common.junit_path.empty() && result.junit) {
      const std::string run = fmt::format("zeroproof {}", info.name);
      auto written = write_file_atomically(common.junit_path, junit_xml(run, result.junit()));
      if (!written) return written;
    }
    if (common.out_dir.empty() || !result.json || result.has_written_out) return {};
    if (auto made = make_folder(common.out_dir); !made) return made;
    return write_file_atomically(fmt::format("{}/{}.json", common.out_dir, info.name),
                                 result.json() + "\n");
  }

  // For the tools that read findings: SARIF, annotations, the summary of a step.
  Result<void> publish_findings(const VerbInfo& info, const VerbResult& result) {
    const CommonFlags& common = session_.common;
    if (common.sarif_path.empty() && !common.has_annotations) return {};
    if (!result.findings) {
      if (common.sarif_path.empty()) return {};
      return fail(ErrorCode::usage,
                  fmt::format("{}: --sarif: this verb has no findings to write", info.name));
    }
    const std::string run = fmt::format("zeroproof {}", info.name);
    const LocatedFindings findings = result.findings();
    if (!common.sarif_path.empty()) {
      auto written =
          write_file_atomically(common.sarif_path, sarif_text(run, ZP_VERSION, findings) + "\n");
      if (!written) return written;
    }
    if (common.has_annotations) annotate(run, findings);
    return {};
  }

  // The summary is a file that all steps of a job share.
  static void annotate(const std::string& run, const LocatedFindings& findings) {
    fmt::print(stderr, "{}", github_annotations(findings));
    const char* const path = std::getenv("GITHUB_STEP_SUMMARY");
    if (path == nullptr || *path == '\0') return;
    std::ofstream(path, std::ios::app | std::ios::binary) << github_summary(run, findings);
  }

  Session session_;
  std::string program_;  // as it was called
  std::vector<std::string> words_;
};

}  // namespace

ExitCode run_command(std::span<const char* const> arguments) {
  return Command(arguments).run();
}

}  // namespace zeroproof
