// `zeroproof hunt`: programs that a PyTorch engine trains wrong (docs/how-to/hunt_an_engine.md).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "props/cli/budget.h"
#include "props/cli/bundled_data.h"
#include "props/cli/explore_watch.h"
#include "props/cli/hunt_files.h"
#include "props/cli/interrupt.h"
#include "props/cli/shell_quote.h"
#include "props/cli/verb.h"
#include "props/report/hunt_report.h"
#include "props/subject/subject_hunt.h"

namespace zeroproof {
namespace {

using subject::FindingFolder;
using subject::SubjectCommand;
using subject::SubjectFinding;

constexpr std::string_view kUsualPython = "python3";
constexpr std::int64_t kSecondNs = 1'000'000'000;

std::string engine_words(const std::string& engine, const std::vector<std::string>& settings) {
  return " --engine " + shell_quote(engine) + setting_words(settings);
}

Result<std::int64_t> seconds_of(const std::string& text, std::string_view flag) {
  const auto budget = parse_budget(text);
  if (!budget || !budget->time_ns)
    return fail(ErrorCode::usage, fmt::format("hunt: {} {}: write 20s or 5m", flag, text));
  return *budget->time_ns;
}

class HuntVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_value("engine", engine_,
                    {"NAME", "ddp, fsdp2, deepspeed, megatron, or your own package.module:make"});
    flags.add_value("stage", stage_, {"N", "ZeRO stage of deepspeed; short for --set stage=N"});
    flags.add_list("set", settings_, {"NAME=VALUE", "an option of the engine"});
    flags.add_value("python", python_, {"PATH", "a Python with PyTorch (default python3)"});
    flags.add_value("budget", budget_,
                    {"LIMITS", "cases (300x, the default), time (60s, 30m), or both with a comma"});
    flags.add_value("first", first_, {"N", "the number of the first case (default 0)"});
    flags.add_value("candidates", candidates_,
                    {"N", "run the rarest of N programs a case (default 4; 1 is unguided)"});
    flags.add_value("candidate", candidate_,
                    {"I", "run this program of each case instead, as a reproduce line says"});
    flags.add_value("shards", shards_, {"N", "run one case in N (default 1)"});
    flags.add_value("shard-index", shard_, {"I", "number of this shard, from 0 (default 0)"});
    flags.add_value("corpus", corpus_,
                    {"DIR", "keep findings and progress there, and go on from them"});
    flags.add_value("shrink", shrink_,
                    {"LIMITS", "runs and time to make a finding small (default 300x,5m)"});
    flags.add_switch("no-minimize", skips_minimizing_, "report findings as they were found");
    flags.add_switch("minimize-known", minimizes_known_,
                     "make known findings small too, and name them by their small program");
    flags.add_switch("skip-known", skips_known_,
                     "leave out programs that have every feature of a known finding");
    flags.add_value("answer-limit", answer_limit_,
                    {"TIME", "time limit of each answer of the engine (default 10m)"});
    flags.add_switch("accept-known", accepts_known_, "exit with 0 if every finding is a known one");
    flags.add_list("replay", replayed_, {"PATH", "run findings again: a file, or a folder"});
    flags.add_list("merge", merged_, {"DIR", "merge the findings of these folders into --corpus"});
  }

  Result<VerbResult> run(Session& session) override {
    if (!stage_.empty()) settings_.insert(settings_.begin(), "stage=" + stage_);
    std::ranges::sort(settings_);
    if (!merged_.empty()) return merge(session);
    auto command = command_of();
    if (!command) return tl::unexpected(command.error());
    if (!replayed_.empty()) return replay(*command, session);
    if (engine_.empty())
      return fail(ErrorCode::usage, "hunt: say which engine: --engine ddp, or package.module:make");
    return hunt(*command, session);
  }

 private:
  Result<SubjectCommand> command_of() const {
    const auto limit = seconds_of(answer_limit_, "--answer-limit");
    if (!limit) return tl::unexpected(limit.error());
    SubjectCommand command{.python = python_,
                           .engine = engine_,
                           .settings = settings_,
                           .package_folder = bundled_subject_folder()};
    command.answer_limit_ns = *limit;
    return command;
  }

  Result<subject::HuntOptions> options_of(std::uint64_t seed) const {
    const auto first = parse_count(first_, "hunt: --first");
    const auto candidates = parse_count(candidates_, "hunt: --candidates");
    const auto candidate = parse_count(candidate_.empty() ? "0" : candidate_, "hunt: --candidate");
    const auto shards = parse_count(shards_, "hunt: --shards");
    const auto shard = parse_count(shard_, "hunt: --shard-index");
    const auto budget = parse_budget(budget_);
    const auto shrink = parse_budget(shrink_);
    for (const auto* const count : {&first, &candidates, &candidate, &shards, &shard})
      if (!*count) return tl::unexpected(count->error());
    for (const auto* const limits : {&budget, &shrink})
      if (!*limits) return tl::unexpected(limits->error());
    if (*shard >= *shards)
      return fail(ErrorCode::usage,
                  fmt::format("hunt: --shard-index {}: there are {} shards; the first is 0", *shard,
                              *shards));
    subject::HuntOptions options{.seed = seed, .first = *first, .shard = *shard, .shards = *shards};
    options.candidates = candidate_.empty() ? *candidates : 1;
    options.first_candidate = *candidate;
    options.minimizes = !skips_minimizing_;
    options.minimizes_known = minimizes_known_;
    if (skips_known_) options.known_causes = subject::KnownCauses::skip;
    options.cases_max = budget->work.executions;
    options.time_max_ns = budget->time_ns.value_or(INT64_MAX);
    options.shrink_runs = shrink->work.executions;
    options.shrink_time_ns = shrink->time_ns.value_or(INT64_MAX);
    return options;
  }

  Result<VerbResult> hunt(const SubjectCommand& command, Session& session) {
    const auto options = options_of(session.common.seed);
    if (!options) return tl::unexpected(options.error());
    std::optional<FindingFolder> folder;
    if (!corpus_.empty()) {
      auto opened = FindingFolder::open(corpus_);
      if (!opened) return tl::unexpected(opened.error());
      folder = std::move(*opened);
    }
    auto subject = subject::SubjectProcess::start(command, was_interrupted);
    if (!subject) return tl::unexpected(subject.error());
    const subject::Hello& hello = (*subject)->hello();
    const auto cases = subject::SubjectCases::of(hello.capabilities, "the subject's capabilities");
    if (!cases) return tl::unexpected(cases.error());
    const auto document = std::make_shared<HuntDocument>(HuntDocument{
        .seed = session.common.seed,
        .engine = engine_text(),
        .versions = subject::version_line(hello.versions),
        .report = search(**subject, *cases, folder ? &*folder : nullptr, *options, session),
        .reproduce = reproducer(session)});
    subject->reset();
    return result_of(document, command, session);
  }

  subject::HuntReport search(subject::SubjectProcess& subject, const subject::SubjectCases& cases,
                             const FindingFolder* folder, const subject::HuntOptions& options,
                             const Session& session) const {
    ProgressLine progress(session.common.progress);
    ProgressView view{.task = "hunt " + engine_text(), .unit = "cases"};
    if (options.cases_max != UINT64_MAX) view.runs_max = options.cases_max;
    if (options.time_max_ns != INT64_MAX) view.seconds_max = options.time_max_ns / kSecondNs;
    const auto show = [&](const subject::HuntReport& report) {
      view.runs = report.cases;
      view.strategy = fmt::format("{} runs", report.runs);  // of the subject, also to make it small
      view.features = report.features;
      view.findings = report.findings.size();
      view.hangs = report.hangs;
    };
    const subject::HuntWatch watch{.now_ns = now_ns,
                                   .should_stop = was_interrupted,
                                   .on_run = [&](const subject::HuntReport& report) {
                                     show(report);
                                     progress.update([&] { return view; });
                                   }};
    subject::HuntReport report = subject::SubjectHunt(subject, cases, folder, options, watch).run();
    show(report);
    progress.finish(view);
    return report;
  }

  std::string engine_text() const {
    std::string text = engine_;
    for (const std::string& setting : settings_) text += " " + setting;
    return text;
  }

  // A finding that a file has is replayed; another one's case is drawn again.
  std::function<std::string(const SubjectFinding&)> reproducer(const Session& session) const {
    const std::string folder = corpus_.empty() ? session.common.out_dir : corpus_;
    const std::string python = python_ == kUsualPython ? "" : " --python " + shell_quote(python_);
    return [folder, python](const SubjectFinding& finding) {
      if (!folder.empty())
        return fmt::format("hunt --replay {}{}",
                           shell_quote(finding_base(folder, finding) + ".json"), python);
      return fmt::format("hunt{} --seed {} --first {} --candidate {} --budget 1x{}",
                         engine_words(finding.engine, finding.settings), finding.id.seed,
                         finding.id.number, finding.id.candidate, python);
    };
  }

  ExitCode code_of(const subject::HuntReport& report) const {
    const auto counts = [&](const SubjectFinding& one) {
      return !accepts_known_ || !one.verdict.known;
    };
    if (was_interrupted()) return ExitCode::interrupted;
    if (std::ranges::any_of(report.findings, counts)) return ExitCode::falsified;
    if (report.problem) return exit_code_of(report.problem->code);
    return report.cases > 0 || !merged_.empty() ? ExitCode::held : ExitCode::inconclusive;
  }

  Result<VerbResult> result_of(const std::shared_ptr<HuntDocument>& document,
                               const SubjectCommand& command, Session& session) const {
    if (document->report.problem) session.say("hunt: " + document->report.problem->text);
    if (auto written = write_hunt_files(*document, command, session); !written)
      return tl::unexpected(written.error());
    return VerbResult{
        .code = code_of(document->report),
        .text = [document, &session] { return hunt_text(*document, session.program); },
        .json = [document] { return hunt_json(*document); },
        .junit = [document] { return hunt_cases(*document); },
        .findings = [document] { return located_findings(*document); },
        .has_written_out = !session.common.out_dir.empty(),
        .next = merged_.empty()
                    ? fmt::format("hunt{} --seed {} --budget 30m  # other programs",
                                  engine_words(engine_, settings_), session.common.seed + 1)
                    : ""};
  }

  // One signature of one engine is one finding.
  Result<VerbResult> merge(Session& session) const {
    std::map<std::string, SubjectFinding> by_stem;
    for (const std::string& path : merged_) {
      auto findings = subject::read_findings(path);
      if (!findings) return tl::unexpected(findings.error());
      for (SubjectFinding& one : *findings) {
        const std::string stem = one.file_stem();
        const auto at = by_stem.find(stem);
        if (at == by_stem.end())
          by_stem.emplace(stem, std::move(one));
        else
          at->second = subject::merged(at->second, one);
      }
    }
    const auto document = std::make_shared<HuntDocument>();
    document->seed = session.common.seed;
    document->reproduce = reproducer(session);
    for (auto& [stem, finding] : by_stem) document->report.findings.push_back(std::move(finding));
    if (auto kept = keep(document->report.findings); !kept) return tl::unexpected(kept.error());
    return result_of(document,
                     SubjectCommand{.python = python_,
                                    .engine = "",
                                    .settings = {},
                                    .package_folder = bundled_subject_folder()},
                     session);
  }

  Result<void> keep(std::vector<SubjectFinding>& findings) const {
    if (corpus_.empty()) return {};
    const auto folder = FindingFolder::open(corpus_);
    if (!folder) return tl::unexpected(folder.error());
    for (SubjectFinding& finding : findings)
      if (auto saved = folder->save(finding); !saved) return saved;
    return {};
  }

  // A subject for each engine with its settings; --engine and --set take their place.
  Result<VerbResult> replay(const SubjectCommand& command, Session& session) const {
    const auto replayed = std::make_shared<std::vector<ReplayedFinding>>();
    std::unique_ptr<subject::SubjectProcess> subject;
    for (const std::string& path : replayed_) {
      const auto findings = subject::read_findings(path);
      if (!findings) return tl::unexpected(findings.error());
      for (const SubjectFinding& finding : *findings) {
        if (auto ready = prepare(command, finding, subject); !ready)
          return tl::unexpected(ready.error());
        auto again = subject::repeat(*subject, finding, subject::kConfirmingRuns);
        if (!again) return tl::unexpected(again.error());
        replayed->push_back(
            {path, finding, subject::version_line(subject->hello().versions), std::move(*again)});
      }
    }
    return VerbResult{
        .code = code_of(*replayed),
        .text = [replayed, &session] { return session.seed_line() + hunt_replay_text(*replayed); },
        .json = [replayed] { return hunt_replay_json(*replayed); },
        .junit = [replayed] { return hunt_replay_cases(*replayed); }};
  }

  static Result<void> prepare(SubjectCommand command, const SubjectFinding& finding,
                              std::unique_ptr<subject::SubjectProcess>& subject) {
    if (command.engine.empty()) command.engine = finding.engine;
    if (command.settings.empty()) command.settings = finding.settings;
    if (subject && subject->command().engine == command.engine &&
        subject->command().settings == command.settings)
      return {};
    subject.reset();
    auto started = subject::SubjectProcess::start(std::move(command), was_interrupted);
    if (!started) return tl::unexpected(started.error());
    subject = std::move(*started);
    return {};
  }

  static ExitCode code_of(const std::vector<ReplayedFinding>& replayed) {
    if (was_interrupted()) return ExitCode::interrupted;
    const auto fails = [](const ReplayedFinding& one) {
      return one.again.same_runs > 0 || one.again.verdict.is_finding();
    };
    if (std::ranges::any_of(replayed, fails)) return ExitCode::falsified;
    return replayed.empty() ? ExitCode::inconclusive : ExitCode::held;
  }

  std::string engine_;
  std::string stage_;
  std::vector<std::string> settings_;
  std::string python_ = std::string(kUsualPython);
  std::string budget_ = "300x";
  std::string first_ = "0";
  std::string candidates_ = std::to_string(subject::kUsualCandidates);
  std::string candidate_;
  std::string shards_ = "1";
  std::string shard_ = "0";
  std::string corpus_;
  std::string shrink_ = "300x,5m";
  bool skips_minimizing_ = false;
  bool minimizes_known_ = false;
  bool skips_known_ = false;
  std::string answer_limit_ = "10m";
  bool accepts_known_ = false;
  std::vector<std::string> replayed_;
  std::vector<std::string> merged_;
};

}  // namespace

std::unique_ptr<Verb> make_hunt() {
  return std::make_unique<HuntVerb>();
}

}  // namespace zeroproof
