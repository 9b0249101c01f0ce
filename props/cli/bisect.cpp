// `zeroproof bisect`: the releases in which a finding of hunt came and went.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "props/cli/bundled_data.h"
#include "props/cli/interrupt.h"
#include "props/cli/verb.h"
#include "props/report/bisect_report.h"
#include "props/report/progress.h"
#include "props/subject/finding_folder.h"
#include "props/subject/release_environment.h"
#include "props/subject/release_search.h"
#include "props/subject/subject_hunt.h"
#include "props/subject/subject_process.h"

namespace zeroproof {
namespace {

using subject::EnvironmentMaker;
using subject::Presence;
using subject::SubjectCommand;
using subject::SubjectFinding;
using subject::SubjectProcess;

const std::map<std::string, std::string, std::less<>> kPackages = {{"ddp", "torch"},
                                                                   {"fsdp2", "torch"},
                                                                   {"deepspeed", "deepspeed"},
                                                                   {"megatron", "megatron-core"}};

// Of a package that the finding ran on, without what a build appends: "2.15.0" of "2.15.0+cu132".
std::string version_of(const SubjectFinding& finding, const std::string& package) {
  for (const auto& [name, version] : finding.versions)
    if (name == package) return version.substr(0, version.find('+'));
  return {};
}

class BisectVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_, {"FINDING", "a file that `hunt --corpus` or `hunt --out` wrote"});
    flags.add_value("versions", versions_,
                    {"RANGE", "releases to try: 0.18.3..0.19.8, or a list 0.18.9,0.19.5,0.19.8"});
    flags.add_value("package", package_,
                    {"NAME",
                     "the package of these releases (default: that of the engine)",
                     {"deepspeed", "megatron-core", "torch"}});
    flags.add_value(
        "torch", torch_,
        {"VERSION", "PyTorch beside releases of another package (default: that of the finding)"});
    flags.add_value("environments", program_,
                    {"PROGRAM",
                     "program that makes a Python environment of a release (default: "
                     "recorder/environment.sh)"});
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.size() != 1 || versions_.empty())
      return fail(ErrorCode::usage,
                  "bisect: give one finding and a range: bisect found/NAME.json --versions "
                  "0.18.3..0.19.8");
    auto finding = subject::read_finding(words_.front());
    if (!finding) return tl::unexpected(finding.error());
    if (auto named = name_package(*finding); !named) return tl::unexpected(named.error());
    if (torch_.empty() && package_ != "torch") torch_ = version_of(*finding, "torch");
    if (program_.empty()) program_ = bundled_recorder_folder() + "/environment.sh";
    const EnvironmentMaker maker(program_, package_, torch_, was_interrupted);
    const auto releases = maker.releases(versions_);
    if (!releases) return tl::unexpected(releases.error());
    const auto document =
        std::make_shared<BisectDocument>(search(*finding, maker, *releases, session));
    return VerbResult{
        .code = code_of(*document),
        .text = [document, &session] { return session.seed_line() + bisect_text(*document); },
        .json = [document] { return bisect_json(*document); }};
  }

 private:
  Result<void> name_package(const SubjectFinding& finding) {
    const auto known = kPackages.find(finding.engine);
    if (package_.empty() && known != kPackages.end()) package_ = known->second;
    if (!package_.empty()) return {};
    return fail(ErrorCode::usage,
                fmt::format("bisect: engine '{}': say whose releases: --package torch, deepspeed "
                            "or megatron-core",
                            finding.engine));
  }

  BisectDocument search(const SubjectFinding& finding, const EnvironmentMaker& maker,
                        const std::vector<std::string>& releases, const Session& session) const {
    BisectDocument document{.package = package_, .finding = finding, .trials = {}, .changes = {}};
    for (const std::string& release : releases)
      document.trials.push_back({.release = release, .presence = {}, .text = {}});
    ProgressLine progress(session.common.progress);
    ProgressView view{.strategy = "releases"};
    subject::ReleaseSearch found(releases.size(), [&](std::size_t at) -> std::optional<Presence> {
      view.task = fmt::format("bisect {} {}", package_, releases[at]);
      progress.update([&] { return view; });
      const auto presence = presence_in(finding, maker, document.trials[at]);
      if (was_interrupted()) return std::nullopt;
      ++view.runs;
      return presence;
    });
    const auto own = std::ranges::find(releases, version_of(finding, package_));
    found.run(own == releases.end()
                  ? std::nullopt
                  : std::optional(static_cast<std::size_t>(own - releases.begin())));
    progress.finish(view);
    for (std::size_t at = 0; at < releases.size(); ++at)
      document.trials[at].presence = found.tried()[at];
    document.changes = found.changes();
    return document;
  }

  // Runs the finding's program with one release, and says what came in the trial.
  static Presence presence_in(const SubjectFinding& finding, const EnvironmentMaker& maker,
                              ReleaseTrial& trial) {
    const auto environment = maker.make(trial.release);
    if (!environment) return cannot(trial, environment.error());
    SubjectCommand command{.python = environment->python,
                           .engine = finding.engine,
                           .settings = finding.settings,
                           .python_path = environment->python_path,
                           .package_folder = bundled_subject_folder()};
    const auto process = SubjectProcess::start(std::move(command), was_interrupted);
    if (!process) return cannot(trial, process.error());
    const auto again = subject::repeat(**process, finding, subject::kConfirmingRuns);
    if (!again) return cannot(trial, again.error());
    trial.text = subject::version_line((*process)->hello().versions) + ": " + again->text();
    if (again->same_runs > 0) return Presence::present;
    const subject::Verdict& verdict = again->verdict;
    return verdict.is_finding() || verdict.status == subject::Status::equal ? Presence::absent
                                                                            : Presence::cannot_run;
  }

  static Presence cannot(ReleaseTrial& trial, const Error& error) {
    trial.text = error.text;
    return Presence::cannot_run;
  }

  // Held: the search went to its end, and some release has the finding.
  static ExitCode code_of(const BisectDocument& document) {
    if (was_interrupted()) return ExitCode::interrupted;
    const auto has = [&](Presence wanted) {
      return std::ranges::any_of(document.trials,
                                 [&](const ReleaseTrial& one) { return one.presence == wanted; });
    };
    if (has(Presence::present)) return ExitCode::held;
    return has(Presence::absent) ? ExitCode::inconclusive : ExitCode::cannot_run;
  }

  std::vector<std::string> words_;
  std::string versions_;
  std::string package_;
  std::string torch_;
  std::string program_;
};

}  // namespace

std::unique_ptr<Verb> make_bisect() {
  return std::make_unique<BisectVerb>();
}

}  // namespace zeroproof
