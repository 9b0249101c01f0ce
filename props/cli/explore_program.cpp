#include "props/cli/explore_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/small_file.h"
#include "model/nearest_name.h"
#include "props/cli/budget.h"
#include "props/cli/explore_watch.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/program_picture.h"
#include "props/cli/shell_quote.h"
#include "props/hunt/beside.h"
#include "props/program/program_json.h"
#include "props/program/program_text.h"
#include "props/report/program_report.h"
#include "props/run_properties.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kCases = 200;  // without --budget
constexpr int kMostGpus = 8;
constexpr std::uint64_t kFileBytesMax = 1U << 24;
constexpr std::array<std::string_view, 3> kJudges = {"values", "host", "cuda"};

// A program that a file holds: alone, or as an entry of a corpus.
Result<program::Program> program_in(const std::string& path) {
  const auto text = read_small_file(path, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  if (text->find(hunt::kCorpusSchema) == std::string::npos)
    return program::parse_program(*text, path);
  return hunt::parse_corpus_entry(*text, path).map([](const hunt::CorpusEntry& entry) {
    return entry.program;
  });
}

// Only the order is drawn.
hunt::DrawnProgram given(const program::Program& program, program::Source source) {
  hunt::DrawnProgram drawn{std::move(source), nullptr, ""};
  auto runnable = program::RunnableProgram::make(program);
  if (runnable)
    drawn.program = std::make_unique<hunt::ProgramCase>(std::move(*runnable));
  else
    drawn.problem = runnable.error().text;
  return drawn;
}

// One exploration: of drawn programs, or of the program of one file.
class Exploration {
 public:
  Exploration(hunt::ProgramHuntOptions options, std::string judge, const Gpus* gpus)
      : options_(std::move(options)), gpus_(gpus) {
    result_.subject = "drawn programs";
    result_.judge = std::move(judge);
  }

  Result<void> use(const std::string& path) {
    auto program = program_in(path);
    if (!program) return tl::unexpected(program.error());
    if (const auto runnable = program::RunnableProgram::make(*program); !runnable)
      return fail(runnable.error().code, fmt::format("{}: {}", path, runnable.error().text));
    given_ = std::move(*program);
    options_.draw = [this](program::Source source) { return given(*given_, std::move(source)); };
    result_.subject = path;
    return {};
  }

  ProgramExploration run() {
    const hunt::ProgramHuntWatch watch{.now_ns = now_ns, .should_stop = was_interrupted};
    if (result_.judge == "values")
      run_values(watch);
    else
      run_beside(watch);
    return std::move(result_);
  }

 private:
  void run_values(const hunt::ProgramHuntWatch& watch) {
    hunt::ProgramHunter hunter(options_, watch);
    const auto done = hunter.run_unmutated(
        0, options_.cases_max, options_.time_max_ns, [&](const hunt::ProgramFound& found) {
          ProgramFinding finding{
              .kind = found.property ? std::string(found.property->number) : "no_program",
              .text = found.finding,
              .case_number = found.case_number,
              .choices_before = found.choices_before,
              .shrink_runs = found.shrink_runs};
          complete(finding, found.counterexample);
        });
    result_.cases = done.cases;
    result_.executions = done.executions;
    result_.seconds = done.seconds;
  }

  void run_beside(const hunt::ProgramHuntWatch& watch) {
    const hunt::BesideReport done = hunt::search_beside(options_, gpus_, watch);
    result_.cases = done.cases;
    result_.skipped = done.skipped;
    result_.executions = 2 * (done.cases - done.skipped);
    result_.tokens = done.tokens;
    result_.values = done.values;
    result_.seconds = done.seconds;
    for (const hunt::BesideFound& found : done.findings) {
      ProgramFinding finding{.kind = result_.judge + "_differs",
                             .text = found.difference,
                             .case_number = found.case_number,
                             .choices_before = found.choices_before,
                             .shrink_runs = found.shrink_runs};
      complete(finding, {.values = found.values, .judge = {}});
    }
  }

  // The program as text and document, and what shows the finding again.
  void complete(ProgramFinding& finding, const hunt::ProgramCounterexample& counterexample) {
    finding.choices = counterexample.values.size();
    finding.entry.judge = counterexample.judge;
    finding.entry.property = finding.kind;
    if (given_) {
      finding.entry.program = *given_;
      finding.entry.schedule = counterexample.values;
    } else {
      finding.token = hunt::token_of(counterexample, "unmutated");
      const auto entry = hunt::corpus_entry_of(
          {.property = nullptr, .finding = "", .counterexample = counterexample});
      if (entry) {
        finding.entry.program = entry->program;
        finding.entry.schedule = entry->schedule;
      }
    }
    const auto contract = program::Contract::of(finding.entry.program);
    finding.program = program::program_text(finding.entry.program, contract ? &*contract : nullptr);
    result_.findings.push_back(std::move(finding));
  }

  hunt::ProgramHuntOptions options_;
  const Gpus* gpus_;
  std::optional<program::Program> given_;
  ProgramExploration result_;
};

Result<hunt::ProgramHuntOptions> options_of(const ExploreWords& words, std::uint64_t seed) {
  const auto budget =
      parse_budget(words.budget.empty() ? fmt::format("{}x", kCases) : words.budget);
  if (!budget) return tl::unexpected(budget.error());
  hunt::ProgramHuntOptions options{.seed = seed, .minimizes = words.minimizes};
  options.cases_max = budget->work.executions;
  options.time_max_ns = budget->time_ns.value_or(INT64_MAX);
  return options;
}

// BASE.json, an entry of a corpus, and pictures of its run where a judge of runs has found it.
Result<void> write_finding(const ProgramFinding& finding, const std::string& base,
                           const Session& session) {
  const std::string path = base + ".json";
  auto written = write_file_atomically(path, hunt::corpus_json(finding.entry));
  if (!written || find_any_property(finding.kind) == nullptr) return written;
  auto shown = program_picture(finding.entry, {}, fmt::format("{} on our engine", finding.kind));
  if (!shown) return tl::unexpected(shown.error());
  shown->picture.note = finding.text;
  shown->picture.reproduce = fmt::format("{} replay {}", session.program, shell_quote(path));
  return write_program_pictures(*shown, base);
}

// DIR/explore.json, and the files of each finding, DIR/KIND-CASE.*.
Result<void> write_files(const std::vector<ProgramExploration>& explorations,
                         const Session& session) {
  const std::string& folder = session.common.out_dir;
  if (folder.empty()) return {};
  if (auto made = make_folder(folder); !made) return made;
  const std::string json = program_exploration_json(explorations, session.common.seed) + "\n";
  if (auto written = write_file_atomically(folder + "/explore.json", json); !written)
    return written;
  for (const ProgramExploration& one : explorations)
    for (const ProgramFinding& finding : one.findings) {
      const std::string base = fmt::format("{}/{}-{}", folder, finding.kind, finding.case_number);
      if (auto written = write_finding(finding, base, session); !written) return written;
    }
  return {};
}

ExitCode code_of(const std::vector<ProgramExploration>& explorations) {
  if (was_interrupted()) return ExitCode::interrupted;
  const auto has_found = [](const ProgramExploration& one) { return !one.findings.empty(); };
  if (std::ranges::any_of(explorations, has_found)) return ExitCode::falsified;
  const auto has_run = [](const ProgramExploration& one) { return one.cases > one.skipped; };
  return std::ranges::all_of(explorations, has_run) ? ExitCode::held : ExitCode::inconclusive;
}

std::string page(const std::vector<ProgramExploration>& explorations, const Session& session) {
  std::string text = session.seed_line();
  for (const ProgramExploration& one : explorations) text += program_exploration_text(one);
  for (const ProgramExploration& one : explorations)
    for (const ProgramFinding& finding : one.findings)
      if (!finding.token.empty() && one.judge == "values")
        return text + fmt::format("reproduce: {} replay {}\n", session.program,
                                  shell_quote(finding.token));
  return text + session.reproduce_line(code_of(explorations));
}

}  // namespace

Result<VerbResult> explore_programs(const ExploreWords& words, const std::string& judge,
                                    Session& session) {
  const std::string name = judge.empty() ? "values" : judge;
  if (std::ranges::find(kJudges, name) == kJudges.end())
    return fail(ErrorCode::usage, fmt::format("explore: --judge {}: of programs: {}", name,
                                              did_you_mean(name, kJudges)));
  const auto options = options_of(words, session.common.seed);
  if (!options) return tl::unexpected(options.error());
  std::optional<Gpus> gpus;
  if (name == "cuda") {
    auto opened = Gpus::open(std::clamp(visible_gpus(), 1, kMostGpus));
    if (!opened) return tl::unexpected(opened.error());
    gpus = std::move(*opened);
  }
  const auto explorations = std::make_shared<std::vector<ProgramExploration>>();
  std::vector<std::string> subjects = words.scenarios;
  if (subjects.empty()) subjects.emplace_back();
  for (const std::string& path : subjects) {
    Exploration exploration(*options, name, gpus ? &*gpus : nullptr);
    if (!path.empty())
      if (auto used = exploration.use(path); !used) return tl::unexpected(used.error());
    explorations->push_back(exploration.run());
  }
  if (auto written = write_files(*explorations, session); !written)
    return tl::unexpected(written.error());
  return VerbResult{
      .code = code_of(*explorations),
      .text = [explorations, &session] { return page(*explorations, session); },
      .json = [explorations,
               &session] { return program_exploration_json(*explorations, session.common.seed); },
      .junit = [explorations] { return program_exploration_cases(*explorations); },
      .findings = [explorations] { return located_findings(*explorations); },
      .has_written_out = !session.common.out_dir.empty()};
}

bool is_program_file(const std::string& word) {
  if (!word.ends_with(".json")) return false;
  const auto text = read_small_file(word, kFileBytesMax);
  return text && text->find(hunt::kCorpusSchema) != std::string::npos;
}

bool is_program_word(const std::string& word) {
  return word.starts_with("zps1:program/") || is_program_file(word);
}

Result<hunt::CorpusEntry> read_program_entry(const std::string& path) {
  const auto text = read_small_file(path, kFileBytesMax);
  if (!text) return tl::unexpected(text.error());
  return hunt::parse_corpus_entry(*text, path);
}

Result<VerbResult> replay_program(const std::string& word, Session& session) {
  const auto report = std::make_shared<ProgramReplayReport>();
  report->source = word;
  if (word.ends_with(".json")) {
    const auto entry = read_program_entry(word);
    if (!entry) return tl::unexpected(entry.error());
    const auto entry_case = hunt::CorpusCase::make(*entry);
    if (!entry_case) return tl::unexpected(entry_case.error());
    const program::RunnableProgram& runnable = entry_case->runnable();
    report->program = program::program_text(runnable.program(), &runnable.contract());
    report->result = entry_case->run({});
  } else {
    const auto counterexample = hunt::read_program_token(word, "replay");
    if (!counterexample) return tl::unexpected(counterexample.error());
    auto again = hunt::replay(*counterexample, nullptr);
    if (!again) return fail(ErrorCode::usage, "replay: these choices are no program any more");
    report->program = std::move(again->text);
    report->result = std::move(again->result);
  }
  const bool holds = report->result.falsified.empty();
  return VerbResult{
      .code = holds ? ExitCode::held : ExitCode::falsified,
      .text = [report, &session] { return session.seed_line() + program_replay_text(*report); },
      .json = [report] { return program_replay_json(*report); }};
}

}  // namespace zeroproof
