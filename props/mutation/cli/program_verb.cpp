// `zeroproof-mutation programs`: the hunt that draws programs (props/program).
#include "props/mutation/cli/program_verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/small_file.h"
#include "model/nearest_name.h"
#include "props/cli/budget.h"
#include "props/cli/explore_watch.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/hunt/corpus.h"
#include "props/hunt/parallel_hunt.h"
#include "props/hunt/program_hunt.h"
#include "props/mutation/cli/program_findings.h"
#include "props/mutation/coverage_report.h"
#include "props/mutation/mutants.h"
#include "props/program/program_text.h"
#include "props/report/table.h"

namespace zeroproof {
namespace {

using hunt::ProgramFound;
using mutation::Fault;
using OrderedJson = nlohmann::ordered_json;

struct ProgramReport {
  std::vector<ProgramFound> found;
  std::vector<ProgramFound> findings;  // of the unmutated engine
  hunt::ProgramHunter::Unmutated unmutated;
  std::optional<bool> is_canary_found = std::nullopt;  // where faults were hunted

  ProgramHuntFindings for_tools() const {
    return {found, findings, is_canary_found.value_or(true)};
  }
  std::size_t count() const {
    std::size_t count = 0;
    for (const ProgramFound& one : found) count += one.is_found ? 1U : 0U;
    return count;
  }
};

std::string text_of(const ProgramFound& found) {
  const auto again = hunt::replay(found.counterexample, found.fault);
  const std::string number = found.property ? std::string(found.property->number) : "";
  return fmt::format("{} {}: {}\n{}replay: {}\n", found.fault ? found.fault->id : "unmutated",
                     number, found.finding, again ? again->text : std::string(),
                     token_of(found.counterexample, found.fault ? found.fault->id : "unmutated"));
}

std::string report_text(const ProgramReport& report, bool has_programs) {
  std::vector<std::vector<std::string>> rows;
  std::string programs;
  for (const ProgramFound& one : report.found) {
    rows.push_back(
        {std::string(one.fault->id), one.is_found ? "found" : "not found",
         one.property ? std::string(one.property->number) : "",
         fmt::format("{} executions", one.executions), fmt::format("{:.1f} s", one.seconds),
         one.is_found ? fmt::format("{} of {} choices, {} runs", one.counterexample.values.size(),
                                    one.choices_before, one.shrink_runs)
                      : ""});
    if (one.is_found && has_programs) programs += "\n" + text_of(one);
  }
  std::string text = table_text(rows);
  text += fmt::format("{} of {} faults found\n", report.count(), report.found.size());
  if (report.is_canary_found == false) text += "the canary was not found: the hunt is blind\n";
  if (report.unmutated.cases != 0)
    text += fmt::format("unmutated engine: {} findings in {} cases, {} executions, {:.1f} s\n",
                        report.findings.size(), report.unmutated.cases, report.unmutated.executions,
                        report.unmutated.seconds);
  if (report.unmutated.cases != 0) text += mutation::coverage_text(report.unmutated.coverage);
  for (const ProgramFound& one : report.findings)
    text += fmt::format("\ncase {}: ", one.case_number) + text_of(one);
  return text + programs;
}

OrderedJson row_of(const ProgramFound& found) {
  return {{"id", found.fault ? std::string(found.fault->id) : "unmutated"},
          {"sentence", found.fault ? found.fault->sentence : ""},
          {"modelled", true},
          {"found", found.is_found},
          {"property", found.property ? std::string(found.property->number) : ""},
          {"text", found.finding},
          {"case", found.case_number},
          {"executions", found.executions},
          {"seconds", found.seconds},
          {"choices", found.counterexample.values.size()},
          {"choices_before", found.choices_before},
          {"shrink_runs", found.shrink_runs},
          {"token", found.is_found ? token_of(found.counterexample,
                                              found.fault ? found.fault->id : "unmutated")
                                   : ""}};
}

// What verify's last row is made of (props/mutation_row.h).
OrderedJson summary_of(const ProgramReport& report) {
  return {{"hunted", report.found.size()},
          {"found", report.count()},
          {"canary_found", report.is_canary_found.value_or(true)},
          {"unmutated_clean", report.findings.empty()},
          {"unmutated_executions", report.unmutated.executions}};
}

std::string report_json(const ProgramReport& report) {
  OrderedJson found = OrderedJson::array();
  OrderedJson findings = OrderedJson::array();
  OrderedJson sentences = OrderedJson::array();
  for (const ProgramFound& one : report.findings) sentences.push_back(one.finding);
  for (const ProgramFound& one : report.found) found.push_back(row_of(one));
  for (const ProgramFound& one : report.findings) findings.push_back(row_of(one));
  OrderedJson applicability = OrderedJson::object();
  for (const hunt::Checker& checker : hunt::checkers())
    applicability[std::string(checker.name)] = report.unmutated.activity.of(checker.name);
  return OrderedJson{{"schema", "zeroproof.programs/1"},
                     {"summary", summary_of(report)},
                     {"unmutated_findings", sentences},
                     {"faults", found},
                     {"unmutated",
                      {{"cases", report.unmutated.cases},
                       {"executions", report.unmutated.executions},
                       {"seconds", report.unmutated.seconds},
                       {"coverage", mutation::coverage_json(report.unmutated.coverage)},
                       {"applicability", applicability},
                       {"findings", findings}}}}
      .dump(1);
}

class ProgramsVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_, {"ID", "faults to hunt (default: none, the unmutated engine alone)"});
    flags.add_switch("all", is_all_, "every fault");
    flags.add_switch("hazards", has_hazards_, "every hazard of docs/HAZARDS.md");
    flags.add_switch("quick", is_quick_,
                     "the catalogue's faults of tier 1, not minimised, as verify hunts them");
    flags.add_value("workers", workers_, {"N", "threads (default: as the machine has)"});
    flags.add_switch("whole", is_whole_, "minimise nothing");
    flags.add_switch("relations", has_all_relations_,
                     "judge every relation that speaks of a program (default: one, in one case of "
                     "four)");
    flags.add_value("judge", judge_, {"NAME", "values, events or a relation (MR1): it alone"});
    flags.add_switch("applicability", has_applicability_,
                     "in how many cases each property and relation had something to judge");
    flags.add_switch("markdown", is_markdown_,
                     "the table of docs/reference/properties.md, and nothing else");
    flags.add_value("budget", budget_,
                    {"BUDGET", "of each fault: 20s, 20000x cases (default 20s,20000x)"});
    flags.add_value("unmutated", unmutated_,
                    {"BUDGET", "of the unmutated engine: 30s, 500x cases (default 200x)"});
    flags.add_value("replay", replay_,
                    {"TOKEN", "one counterexample again; or a file that --write-corpus wrote"});
    flags.add_value("write-corpus", corpus_,
                    {"FOLDER", "write ID.json of each fault that is found: program and schedule"});
  }

  Result<VerbResult> run(Session& session) override {
    if (!replay_.empty()) return run_replay(session);
    const auto faults = faults_of();
    if (!faults) return tl::unexpected(faults.error());
    hunt::ProgramHuntOptions options{.seed = session.common.seed,
                                     .minimizes = !is_whole_ && !is_quick_,
                                     .has_all_relations = has_all_relations_};
    const auto workers = parse_workers();
    if (!workers) return tl::unexpected(workers.error());
    if (is_quick_) options.cases_max = kQuickCases;
    options.judge = hunt::judge_named(judge_);
    if (!judge_.empty() && !options.judge)
      return fail(ErrorCode::usage, fmt::format("programs: --judge {}: values, events, or the "
                                                "number or id of a relation",
                                                judge_));
    const auto budget = parse_budget(budget_);
    if (!budget) return tl::unexpected(budget.error());
    if (budget->time_ns) options.time_max_ns = *budget->time_ns;
    if (budget->work.executions != Budget::kUnlimited) options.cases_max = budget->work.executions;
    const auto unmutated = parse_budget(unmutated_.empty() ? "200x" : unmutated_);
    if (!unmutated) return tl::unexpected(unmutated.error());
    if (auto made = make_corpus_folder(); !made) return tl::unexpected(made.error());
    const hunt::ProgramHuntWatch watch{.now_ns = now_ns, .should_stop = was_interrupted};
    hunt::ProgramHunter hunter(options, watch);
    const auto report = std::make_shared<ProgramReport>();
    mutants_ = mutation::mutants_of(*faults);
    Result<void> written;
    const auto on_found = [&](const ProgramFound& found) {
      session.say(fmt::format("{} {}", found.fault->id, found.is_found ? "found" : "not found"));
      if (written) written = write_entry(found);
    };
    report->found = hunt::hunt_all(mutants_, options, *workers, watch, on_found);
    if (!written) return tl::unexpected(written.error());
    if (!mutants_.empty()) {
      const hunt::Mutant canary = mutation::mutant_of(mutation::canary());
      report->is_canary_found = hunter.hunt(canary).is_found;
    }
    report->unmutated =
        hunter.run_unmutated(0, unmutated->work.executions, unmutated->time_ns.value_or(INT64_MAX),
                             [&](const ProgramFound& finding) {
                               report->findings.push_back(finding);
                               session.say("the unmutated engine:\n" + text_of(finding));
                             });
    return VerbResult{.code = code_of(*report),
                      .text = [report, this, &session] { return page_of(*report, session); },
                      .json = [report] { return report_json(*report); },
                      .junit = [report] { return program_hunt_cases(report->for_tools()); },
                      .findings = [report] { return located_findings(report->for_tools()); }};
  }

 private:
  std::string page_of(const ProgramReport& report, const Session& session) const {
    const hunt::Activity& activity = report.unmutated.activity;
    if (is_markdown_) return hunt::activity_markdown(activity);
    std::string text = session.seed_line() + report_text(report, words_.size() == 1);
    if (has_applicability_) text += hunt::activity_text(activity);
    return text;
  }

  static ExitCode code_of(const ProgramReport& report) {
    if (was_interrupted()) return ExitCode::interrupted;
    const bool is_good = report.findings.empty() && report.count() == report.found.size() &&
                         report.is_canary_found != false;
    return is_good ? ExitCode::held : ExitCode::falsified;
  }

  Result<std::vector<const Fault*>> faults_of() const {
    std::vector<const Fault*> chosen;
    const auto add = [&](const Fault& fault) {
      const bool is_meant = !is_quick_ || (fault.is_of_catalogue() && fault.row().tier == 1);
      if (fault.is_modelled() && is_meant) chosen.push_back(&fault);
    };
    if (is_all_ || is_quick_)
      for (const Fault* fault : mutation::hunted_faults()) add(*fault);
    if (has_hazards_)
      for (const Fault& fault : mutation::hazards()) add(fault);
    for (const std::string& word : words_) {
      const Fault* const fault = mutation::find_fault(word);
      if (!fault) return unknown(word);
      chosen.push_back(fault);
    }
    return chosen;
  }

  static tl::unexpected<Error> unknown(const std::string& word) {
    std::vector<std::string_view> ids;
    for (const Fault* fault : mutation::named_faults()) ids.push_back(fault->id);
    return fail(ErrorCode::usage,
                fmt::format("programs: unknown fault '{}': {}", word, did_you_mean(word, ids)));
  }

  Result<std::size_t> parse_workers() const {
    if (workers_.empty()) return std::max<std::size_t>(1, std::thread::hardware_concurrency());
    const auto workers = parse_count(workers_, "--workers");
    if (!workers) return tl::unexpected(workers.error());
    if (*workers < 1 || *workers > kMostWorkers)
      return fail(ErrorCode::usage, fmt::format("--workers: from 1 to {}", kMostWorkers));
    return *workers;
  }

  Result<void> make_corpus_folder() const {
    return corpus_.empty() ? Result<void>{} : make_folder(corpus_);
  }

  Result<void> write_entry(const ProgramFound& found) const {
    if (corpus_.empty() || !found.is_found) return {};
    const auto entry = hunt::corpus_entry_of(found);
    if (!entry) return tl::unexpected(entry.error());
    return write_file_atomically(fmt::format("{}/{}.json", corpus_, entry->fault),
                                 hunt::corpus_json(*entry));
  }

  // Under the fault that the file names.
  Result<VerbResult> run_entry(const Session& session) const {
    const auto text = read_small_file(replay_, kEntryBytesMax);
    if (!text) return tl::unexpected(text.error());
    const auto entry = hunt::parse_corpus_entry(*text, replay_);
    if (!entry) return tl::unexpected(entry.error());
    const Fault* const fault = mutation::find_fault(entry->fault);
    if (!fault && !entry->fault.empty()) return unknown(entry->fault);
    const auto entry_case = hunt::CorpusCase::make(*entry);
    if (!entry_case) return tl::unexpected(entry_case.error());
    const program::RunnableProgram& runnable = entry_case->runnable();
    const program::EngineVariant variant =
        fault ? mutation::mutant_of(*fault).variant : program::EngineVariant{};
    return replayed(session, program::program_text(runnable.program(), &runnable.contract()),
                    entry_case->run(variant));
  }

  static VerbResult replayed(const Session& session, const std::string& program,
                             const hunt::CaseResult& result) {
    std::string text = session.seed_line() + program;
    for (const hunt::Falsified& one : result.falsified)
      text += fmt::format("{} rank {}: {}\n", one.property->number, one.rank, one.text);
    if (result.falsified.empty()) text += "every property held\n";
    const ExitCode code = result.falsified.empty() ? ExitCode::held : ExitCode::falsified;
    return VerbResult{.code = code, .text = [text] { return text; }};
  }

  Result<VerbResult> run_replay(const Session& session) const {
    if (replay_.ends_with(".json")) return run_entry(session);
    const auto counterexample = hunt::read_program_token(replay_, "--replay");
    if (!counterexample) return tl::unexpected(counterexample.error());
    const auto faults = faults_of();
    if (!faults) return tl::unexpected(faults.error());
    const std::vector<hunt::Mutant> mutants = mutation::mutants_of(*faults);
    const auto again = hunt::replay(*counterexample, mutants.empty() ? nullptr : &mutants.front());
    if (!again) return fail(ErrorCode::usage, "--replay: these choices are no program any more");
    return replayed(session, again->text, again->result);
  }

  static constexpr std::uint64_t kEntryBytesMax = 1U << 24;
  static constexpr std::uint64_t kMostWorkers = 64;
  static constexpr std::uint64_t kQuickCases = 4000;

  std::vector<std::string> words_;
  std::vector<hunt::Mutant> mutants_;
  bool is_all_ = false;
  bool is_whole_ = false;
  std::string judge_;
  bool has_all_relations_ = false;
  bool has_applicability_ = false;
  bool is_markdown_ = false;
  bool has_hazards_ = false;
  bool is_quick_ = false;
  std::string workers_;
  std::string budget_;
  std::string unmutated_;
  std::string replay_;
  std::string corpus_;
};

}  // namespace

std::unique_ptr<Verb> make_programs() {
  return std::make_unique<ProgramsVerb>();
}

}  // namespace zeroproof
