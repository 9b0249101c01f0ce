#include "props/mutation/cli/mutation_verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/files/atomic_file.h"
#include "model/nearest_name.h"
#include "props/cli/budget.h"
#include "props/cli/explore_program.h"
#include "props/cli/explore_watch.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/mutated_engine.h"
#include "props/cli/program_picture.h"
#include "props/hunt/corpus.h"
#include "props/hunt/parallel_hunt.h"
#include "props/hunt/program_hunt.h"
#include "props/mutation/cli/mutation_report.h"
#include "props/mutation/mutants.h"
#include "props/program/program_text.h"

namespace zeroproof {
namespace {

using hunt::ProgramFound;
using mutation::Fault;

class MutationVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_, {"ID", "faults to hunt (default: all, but none with --unmutated)"});
    flags.add_switch("all", is_all_, "hunt every fault, with --unmutated too");
    flags.add_switch("hazards", has_hazards_, "hunt every hazard of docs/reference/hazards.md");
    flags.add_switch("quick", is_quick_,
                     "hunt the catalogue's faults of tier 1 without minimising, as verify does");
    flags.add_value("workers", workers_, {"N", "threads (default: as the machine has)"});
    flags.add_switch("whole", is_whole_, "minimise no program");
    flags.add_switch("relations", has_all_relations_,
                     "check every relation that applies to a program (default: one, in one case "
                     "of four)");
    flags.add_value("judge", judge_, {"NAME", "check values, events or one relation (MR1) alone"});
    flags.add_switch("applicability", has_applicability_,
                     "count the cases in which each property and relation applies");
    flags.add_switch("markdown", is_markdown_,
                     "print the table of docs/reference/properties.md alone");
    flags.add_value(
        "budget", budget_,
        {"BUDGET", "time and cases of each fault; cases alone have no time (default 20s,20000x)"});
    flags.add_value("unmutated", unmutated_,
                    {"BUDGET", "time and cases of the unmutated engine (default 200x)"});
    flags.add_value(
        "replay", replay_,
        {"TOKEN", "run one counterexample again, by its token or its file of --write-corpus"});
    flags.add_value(
        "write-corpus", corpus_,
        {"DIR", "write program and schedule of each finding as ID.json or unmutated_N.json"});
  }

  Result<VerbResult> run(Session& session) override {
    if (!replay_.empty()) return run_replay(session);
    const auto faults = faults_of();
    if (!faults) return tl::unexpected(faults.error());
    hunt::ProgramHuntOptions options{
        .seed = session.common.seed,
        .minimizes = !is_whole_ && !is_quick_,
        .has_all_relations = has_all_relations_,
        .counts_relations = has_applicability_ || is_markdown_ || session.common.wants_json};
    const auto workers = parse_workers();
    if (!workers) return tl::unexpected(workers.error());
    if (is_quick_) {
      options.cases_max = kQuickCases;
      options.time_max_ns = INT64_MAX;
    }
    options.judge = hunt::judge_named(judge_);
    if (!judge_.empty() && !options.judge)
      return fail(ErrorCode::usage, fmt::format("mutation: --judge {}: values, events, or the "
                                                "number or id of a relation",
                                                judge_));
    const auto budget = parse_budget(budget_);
    if (!budget) return tl::unexpected(budget.error());
    const bool has_cases = budget->work.executions != Budget::kUnlimited;
    if (budget->time_ns || has_cases) options.time_max_ns = budget->time_ns.value_or(INT64_MAX);
    if (has_cases) options.cases_max = budget->work.executions;
    const auto unmutated = parse_budget(unmutated_.empty() ? "200x" : unmutated_);
    if (!unmutated) return tl::unexpected(unmutated.error());
    for (const std::string& folder : {corpus_, session.common.out_dir})
      if (auto made = folder.empty() ? Result<void>{} : make_folder(folder); !made)
        return tl::unexpected(made.error());
    const hunt::ProgramHuntWatch watch{.now_ns = now_ns, .should_stop = was_interrupted};
    hunt::ProgramHunter hunter(options, watch);
    const auto report = std::make_shared<MutationReport>();
    mutants_ = mutation::mutants_of(*faults);
    Result<void> written;
    const auto on_found = [&](const ProgramFound& found) {
      session.say(fmt::format("{} {}", found.fault->id, found.is_found ? "found" : "not found"));
      if (written) written = write_entry(found, found.fault->id, session);
    };
    report->found = hunt::hunt_all(mutants_, options, *workers, watch, on_found);
    if (!written) return tl::unexpected(written.error());
    if (!mutants_.empty()) {
      const hunt::Mutant canary = mutation::mutant_of(mutation::canary());
      report->is_canary_found = hunter.hunt(canary).is_found;
    }
    report->unmutated = hunter.run_unmutated(
        0, unmutated->work.executions, unmutated->time_ns.value_or(INT64_MAX),
        [&](const ProgramFound& finding) {
          report->findings.push_back(finding);
          session.say("the unmutated engine:\n" + finding_text(finding));
          const auto number = report->findings.size();
          if (written) written = write_entry(finding, fmt::format("unmutated_{}", number), session);
        });
    if (!written) return tl::unexpected(written.error());
    return VerbResult{.code = code_of(*report),
                      .text = [report, this, &session] { return page_of(*report, session); },
                      .json = [report] { return report_json(*report); },
                      .junit = [report] { return hunt_cases(report->for_tools()); },
                      .findings = [report] { return located_findings(report->for_tools()); }};
  }

 private:
  std::string page_of(const MutationReport& report, const Session& session) const {
    const hunt::Activity& activity = report.unmutated.activity;
    if (is_markdown_) return hunt::activity_markdown(activity);
    std::string text = session.seed_line() + report_text(report, words_.size() == 1);
    if (has_applicability_) text += hunt::activity_text(activity);
    return text;
  }

  static ExitCode code_of(const MutationReport& report) {
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
    const bool is_default =
        words_.empty() && !has_hazards_ && unmutated_.empty() && replay_.empty();
    if (is_all_ || is_quick_ || is_default)
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
                fmt::format("mutation: unknown fault '{}': {}", word, did_you_mean(word, ids)));
  }

  Result<std::size_t> parse_workers() const {
    if (workers_.empty()) return std::max<std::size_t>(1, std::thread::hardware_concurrency());
    const auto workers = parse_count(workers_, "--workers");
    if (!workers) return tl::unexpected(workers.error());
    if (*workers < 1 || *workers > kMostWorkers)
      return fail(ErrorCode::usage, fmt::format("--workers: from 1 to {}", kMostWorkers));
    return *workers;
  }

  // NAME.json into both folders, and pictures of its run into that of --out.
  Result<void> write_entry(const ProgramFound& found, const std::string& name,
                           const Session& session) const {
    const std::string& out = session.common.out_dir;
    if (!found.is_found || (corpus_.empty() && out.empty())) return {};
    const auto entry = hunt::corpus_entry_of(found);
    if (!entry) return tl::unexpected(entry.error());
    for (const std::string& folder : {corpus_, out}) {
      if (folder.empty()) continue;
      const std::string path = fmt::format("{}/{}.json", folder, name);
      if (auto written = write_file_atomically(path, hunt::corpus_json(*entry)); !written)
        return written;
    }
    return out.empty() ? Result<void>{} : write_pictures_of(*entry, found, name, out);
  }

  static Result<void> write_pictures_of(const hunt::CorpusEntry& entry, const ProgramFound& found,
                                        const std::string& name, const std::string& folder) {
    auto shown =
        program_picture(entry, found.fault ? found.fault->variant : program::EngineVariant{},
                        fmt::format("mutation {}", name));
    if (!shown) return tl::unexpected(shown.error());
    const std::string base = fmt::format("{}/{}", folder, name);
    if (found.fault) shown->picture.note = fmt::format("mutated: {}", found.fault->sentence);
    shown->picture.reproduce = fmt::format("zeroproof mutation --replay {}.json", base);
    return write_program_pictures(*shown, base);
  }

  // Under the fault that the file names.
  Result<VerbResult> run_entry(const Session& session) const {
    const auto entry = read_program_entry(replay_);
    if (!entry) return tl::unexpected(entry.error());
    const auto variant = variant_of_fault(entry->fault);
    if (!variant) return tl::unexpected(variant.error());
    const auto entry_case = hunt::CorpusCase::make(*entry);
    if (!entry_case) return tl::unexpected(entry_case.error());
    const program::RunnableProgram& runnable = entry_case->runnable();
    return replayed(session, program::program_text(runnable.program(), &runnable.contract()),
                    entry_case->run(*variant));
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

  static constexpr std::uint64_t kMostWorkers = 64;
  // Cases alone, so that a slow machine finds what a quick one does; the last fault needs 785.
  static constexpr std::uint64_t kQuickCases = 1500;

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

std::unique_ptr<Verb> make_mutation() {
  return std::make_unique<MutationVerb>();
}

}  // namespace zeroproof
