// `zeroproof verify`: the main job.
#include "props/verify.h"

#include <fmt/format.h>

#include "engine/files/atomic_file.h"
#include "props/cli/bundled_data.h"
#include "props/cli/explore_watch.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/sibling.h"
#include "props/cli/verb.h"
#include "props/report/sarif.h"
#include "props/report/verify_pages.h"
#include "props/report/verify_report.h"

namespace zeroproof {
namespace {

class VerifyVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_switch("quick", is_quick_, "check less: exact at N = 4, upstream in one mode");
    flags.add_value("traces", traces_,
                    {"DIR", "folder of the bundled traces (default: that of 'zeroproof doctor')"});
  }

  Result<VerbResult> run(Session& session) override {
    VerifyOptions options{.is_quick = is_quick_, .traces_folder = traces_};
    options.seed = session.common.seed;
    if (traces_.empty()) options.traces_folder = bundled_traces_folder();
    if (options.traces_folder.empty()) {
      return fail(ErrorCode::cannot_run, "verify: no bundled traces: name a folder with --traces");
    }
    ProgressLine progress(session.common.progress);
    ProgressView view{.task = "verify"};
    const auto on_step = [&](const std::string& step) {
      view.strategy = step;
      ++view.runs;
      progress.update([&] { return view; });
    };
    if (!is_sibling_there(kMutationProgram)) return tl::unexpected(no_sibling(kMutationProgram));
    auto report = verify(options, {on_step, was_interrupted, [&] { return hunt(session); }});
    if (!report) return tl::unexpected(report.error());
    view.strategy.clear();
    progress.finish(view);
    const auto shared = std::make_shared<const VerifyReport>(std::move(*report));
    const std::string folder = report_folder(session);
    if (auto written = write_report(*shared, folder); !written) {
      return tl::unexpected(written.error());
    }
    return result_of(session, shared, folder);
  }

 private:
  // The quick set, by the program beside this one.
  static Result<MutationRow> hunt(const Session& session) {
    const auto output = ask_sibling({std::string(kMutation), "--quick", "--json", "--progress",
                                     "none", "--seed", fmt::to_string(session.common.seed)},
                                    was_interrupted);
    if (!output) return tl::unexpected(output.error());
    return parse_mutation_row(output->text);
  }

  static std::string report_folder(const Session& session) {
    return session.common.out_dir.empty() ? "out/report" : session.common.out_dir;
  }

  static Result<void> write_report(const VerifyReport& report, const std::string& folder) {
    if (auto made = make_folder(folder); !made) return made;
    auto written = write_file_atomically(folder + "/report.json", verify_json(report) + "\n");
    if (!written) return written;
    written = write_file_atomically(folder + "/junit.xml",
                                    junit_xml("zeroproof verify", verify_cases(report)));
    if (!written) return written;
    written = write_file_atomically(
        folder + "/report.sarif",
        sarif_text("zeroproof verify", ZP_VERSION, located_findings(report)) + "\n");
    if (!written) return written;
    written = write_file_atomically(folder + "/report.md", verify_markdown(report));
    return written ? write_pages(report, folder) : written;
  }

  static Result<void> write_pages(const VerifyReport& report, const std::string& folder) {
    for (const char* const part : {"/findings", "/traces"}) {
      if (auto made = make_folder(folder + part); !made) return made;
    }
    for (const ReportPage& page : verify_pages(report)) {
      auto written = write_file_atomically(folder + "/" + page.path, page.text);
      if (!written) return written;
    }
    return {};
  }

  static Result<VerbResult> result_of(const Session& session,
                                      const std::shared_ptr<const VerifyReport>& report,
                                      const std::string& folder) {
    const ExitCode code = report->has_held() ? ExitCode::held : ExitCode::falsified;
    return VerbResult{.code = code,
                      .text =
                          [report, folder, code, &session] {
                            const PageStyle style{session.terminal.columns, session.palette};
                            return session.seed_line() + verify_text(*report, style) +
                                   fmt::format("report: {}/index.html\n", folder) +
                                   session.reproduce_line(code);
                          },
                      .json = [report] { return verify_json(*report); },
                      .junit = [report] { return verify_cases(*report); },
                      .findings = [report] { return located_findings(*report); },
                      .has_written_out = true,
                      .next = "replay TRACE  # a job of yours: docs/how-to/record_a_job.md"};
  }

  bool is_quick_ = false;
  std::string traces_;
};

}  // namespace

std::unique_ptr<Verb> make_verify() {
  return std::make_unique<VerifyVerb>();
}

}  // namespace zeroproof
