// `zeroproof mutation`: the hunt for faults.
#include <fmt/format.h>

#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "model/nearest_name.h"
#include "props/cli/budget.h"
#include "props/cli/explore_watch.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/verb.h"
#include "props/mutation/cli/counterexample_files.h"
#include "props/mutation/hunt.h"
#include "props/mutation/hunt_findings.h"
#include "props/mutation/hunt_report.h"
#include "props/report/progress.h"
#include "props/report/svg.h"
#include "props/run_properties.h"

namespace zeroproof {
namespace {

using mutation::Fault;
using mutation::HuntReport;

constexpr std::uint64_t kMostWorkers = 64;

class MutationVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(
        words_, {"ID",
                 "faults of the bug catalogue, A01 to H17, or further faults, Q01 to Z80 (default: "
                 "all)"});
    flags.add_switch("quick", is_quick_, "tier 1 alone, fewer cases, nothing minimised");
    flags.add_switch("hazards", has_hazards_,
                     "upstream's hazards (h3@deepspeed-0.18.7, …) in place of the catalogue");
    flags.add_switch("matrix", has_matrix_, "which property catches what, and what it alone does");
    flags.add_value("without", without_,
                    {"LIST", "properties that are not judged: P26,R7; any other one then counts"});
    flags.add_value("budget", budget_,
                    {"BUDGET", "of each fault: 60s, 5m, 20000x cases (default 60s,20000x)"});
    flags.add_value("unmutated", unmutated_,
                    {"BUDGET", "of the unmutated engine: 30s, 500x cases (default 200x)"});
    flags.add_value("workers", workers_, {"N", "threads (default: as the machine has)"});
    flags.add_value("case", case_,
                    {"JSON", "one case in the first order, with the fault of ID and without"});
    flags.add_value(
        "replay", replay_,
        {"TOKEN",
         "one counterexample, or a file that holds it, again: with its fault and without"});
  }

  Result<VerbResult> run(Session& session) override {
    if (!case_.empty()) return run_case(session);
    if (!replay_.empty()) return run_replay(session);
    auto options = options_of(session);
    if (!options) return tl::unexpected(options.error());
    const auto faults = entries_of();
    if (!faults) return tl::unexpected(faults.error());
    ProgressLine progress(session.common.progress);
    ProgressView view{.task = "mutation"};
    const mutation::HuntWatch watch{.now_ns = now_ns,
                                    .should_stop = was_interrupted,
                                    .on_progress =
                                        [&](const std::string& step, std::uint64_t executions) {
                                          view.strategy = step;
                                          view.runs = executions;
                                          progress.update([&] { return view; });
                                        },
                                    .on_unmutated_finding =
                                        [&](const std::string& finding) {
                                          ++view.findings;
                                          progress.say("the unmutated engine: " + finding);
                                        }};
    const auto report =
        std::make_shared<const HuntReport>(mutation::hunt(*faults, *options, watch));
    view.strategy.clear();
    progress.finish(view);
    std::string timeline;
    for (const mutation::Found& one : report->found) {
      if (!one.is_found) continue;
      auto drawn =
          draw({std::string(one.fault->id), one.counterexample}, words_.size() == 1, session);
      if (!drawn) return tl::unexpected(drawn.error());
      timeline = std::move(*drawn);
    }
    return result_of(session, report, timeline);
  }

 private:
  // The lanes of a counterexample for the terminal, where they are wanted, and its files for --out.
  static Result<std::string> draw(const mutation::ReadToken& token, bool has_text,
                                  const Session& session) {
    const std::string& folder = session.common.out_dir;
    if (folder.empty() && (!has_text || session.common.wants_json)) return std::string();
    const auto mutated = mutation::replay(token.counterexample, mutation::find_fault(token.id));
    const auto shown =
        show_counterexample(token, located_findings(token, mutated), session.program);
    if (!shown) return tl::unexpected(shown.error());
    if (!folder.empty()) {
      if (auto made = make_folder(folder); !made) return tl::unexpected(made.error());
      if (auto written = write_counterexample_files(token, *shown, folder); !written)
        return tl::unexpected(written.error());
    }
    if (!has_text) return std::string();
    return picture_text(shown->picture,
                        {.columns = std::max<std::size_t>(session.terminal.columns, 60),
                         .palette = session.palette});
  }

  Result<mutation::HuntOptions> options_of(const Session& session) const {
    mutation::HuntOptions options = is_quick_ ? mutation::quick_options() : mutation::HuntOptions();
    options.seed = session.common.seed;
    options.has_matrix = has_matrix_;
    const auto without = parse_without();
    if (!without) return tl::unexpected(without.error());
    options.without = *without;
    options.workers = std::max(1U, std::thread::hardware_concurrency());
    if (!workers_.empty()) {
      const auto workers = parse_count(workers_, "--workers");
      if (!workers) return tl::unexpected(workers.error());
      if (*workers < 1 || *workers > kMostWorkers)
        return fail(ErrorCode::usage, fmt::format("--workers: from 1 to {}", kMostWorkers));
      options.workers = *workers;
    }
    const auto budget = parse_budget(budget_);
    if (!budget) return tl::unexpected(budget.error());
    if (budget->time_ns) options.time_max_ns = *budget->time_ns;
    if (budget->work.executions != Budget::kUnlimited) options.cases_max = budget->work.executions;
    const auto unmutated = parse_budget(unmutated_);
    if (!unmutated) return tl::unexpected(unmutated.error());
    options.unmutated_time_ns = unmutated->time_ns.value_or(0);
    if (unmutated->work.executions != Budget::kUnlimited)
      options.unmutated_cases = unmutated->work.executions;
    return options;
  }

  // Numbers of the properties that --without names, by number or id.
  Result<std::set<std::string>> parse_without() const {
    std::set<std::string> numbers;
    std::istringstream words(without_);
    for (std::string word; std::getline(words, word, ',');) {
      const Property* const property = find_any_property(word);
      if (!property)
        return fail(ErrorCode::usage,
                    fmt::format("--without: unknown property '{}': write P1 to P87, R1 to R20 or "
                                "ids (zeroproof list properties), with commas",
                                word));
      numbers.emplace(property->number);
    }
    return numbers;
  }

  Result<std::vector<const Fault*>> entries_of() const {
    std::vector<const Fault*> chosen;
    for (const std::string& word : words_) {
      const Fault* const fault = mutation::find_fault(word);
      if (!fault) return fail(ErrorCode::usage, unknown(word));
      chosen.push_back(fault);
    }
    if (!words_.empty()) return chosen;
    if (has_hazards_) {
      for (const Fault& fault : mutation::hazards()) chosen.push_back(&fault);
      return chosen;
    }
    return is_quick_ ? mutation::quick_set() : mutation::hunted_faults();
  }

  static std::string unknown(const std::string& word) {
    std::vector<std::string_view> ids;
    for (const Fault* fault : mutation::named_faults()) ids.push_back(fault->id);
    return fmt::format("mutation: unknown fault '{}': {}", word, did_you_mean(word, ids));
  }

  // Held: all that were asked for and can be there are found, the canary too, and the unmutated
  // engine shows nothing.
  ExitCode code_of(const HuntReport& report) const {
    if (report.is_interrupted) return ExitCode::interrupted;
    bool is_good = report.is_good();
    for (const mutation::Found& one : report.found)
      is_good = is_good && (one.is_found || words_.empty());
    return is_good ? ExitCode::held : ExitCode::falsified;
  }

  VerbResult result_of(const Session& session, const std::shared_ptr<const HuntReport>& report,
                       const std::string& timeline) const {
    const ExitCode code = code_of(*report);
    return VerbResult{.code = code,
                      .text =
                          [this, report, code, timeline, &session] {
                            std::string text =
                                session.seed_line() + hunt_text(*report, session.palette);
                            if (has_matrix_) text += hunt_matrix_text(*report);
                            return text + timeline + reproduce_lines(*report, session) +
                                   session.reproduce_line(code);
                          },
                      .json = [report] { return hunt_json(*report); },
                      .junit = [report] { return hunt_cases(*report); },
                      .findings = [report] { return located_findings(*report); }};
  }

  // One line a fault that was asked for by name.
  std::string reproduce_lines(const HuntReport& report, const Session& session) const {
    std::string text;
    for (const mutation::Found& one : report.found) {
      if (words_.empty() || !one.is_found) continue;
      text += fmt::format("{} {}: {}\n  {}\n", one.property->number, one.property->id, one.text,
                          train::case_json(one.counterexample.spec));
      text += fmt::format(
          "reproduce: {}\n",
          replay_command({std::string(one.fault->id), one.counterexample}, session.program));
    }
    return text;
  }

  Result<VerbResult> run_replay(const Session& session) const {
    std::string text = replay_;
    if (!is_schedule_text(text)) {
      const auto schedule = read_schedule_file(replay_);
      if (!schedule) return tl::unexpected(schedule.error());
      text = schedule_text(*schedule);
    }
    const auto token = mutation::read_token(text, "--replay");
    if (!token) return tl::unexpected(token.error());
    const Fault* const fault = mutation::find_fault(token->id);
    if (!fault) return fail(ErrorCode::usage, unknown(token->id));
    const auto mutated = mutation::replay(token->counterexample, fault);
    const auto unmutated = mutation::replay(token->counterexample, fault->reference);
    const bool is_good = mutated.find(fault->properties) && unmutated.falsified.empty();
    const ExitCode code = is_good ? ExitCode::held : ExitCode::falsified;
    const auto timeline = draw(*token, true, session);
    if (!timeline) return tl::unexpected(timeline.error());
    return VerbResult{
        .code = code,
        .text =
            [=, read = *token, &session] {
              return session.seed_line() + hunt_replay_text(read, mutated, unmutated) + *timeline +
                     session.reproduce_line(code);
            },
        .json = [=, read = *token] { return hunt_replay_json(read, mutated, unmutated); },
        .findings = [=, read = *token] { return located_findings(read, mutated); }};
  }

  Result<VerbResult> run_case(const Session& session) const {
    const auto spec = train::parse_case(case_, "--case");
    if (!spec) return tl::unexpected(spec.error());
    const auto chosen = entries_of();
    if (!chosen) return tl::unexpected(chosen.error());
    if (words_.size() != 1) return fail(ErrorCode::usage, "mutation: --case needs one ID");
    const Fault* const fault = chosen->front();
    std::string text = session.seed_line();
    bool is_good = false;
    for (const bool is_of_events : {false, true}) {
      const mutation::ReadToken read{std::string(fault->id), {*spec, is_of_events, {}}};
      const auto mutated = mutation::replay(read.counterexample, fault);
      const auto unmutated = mutation::replay(read.counterexample, fault->reference);
      is_good = is_good || (mutated.find(fault->properties) && unmutated.falsified.empty());
      text += hunt_replay_text(read, mutated, unmutated);
    }
    return VerbResult{.code = is_good ? ExitCode::held : ExitCode::falsified,
                      .text = [text] { return text; }};
  }

  std::vector<std::string> words_;
  std::string case_;
  bool is_quick_ = false;
  bool has_hazards_ = false;
  bool has_matrix_ = false;
  std::string without_;
  std::string budget_;
  std::string unmutated_;
  std::string workers_;
  std::string replay_;
};

}  // namespace

std::unique_ptr<Verb> make_mutation() {
  return std::make_unique<MutationVerb>();
}

}  // namespace zeroproof
