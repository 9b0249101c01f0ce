#include "props/cli/hunt_files.h"

#include <fmt/format.h>

#include "engine/files/atomic_file.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/program_picture.h"
#include "props/program/program_json.h"
#include "props/report/page/hunt_page.h"

namespace zeroproof {
namespace {

using subject::SubjectFinding;

constexpr std::int64_t kScriptLimitNs = 120'000'000'000;

// One after another, until one fails.
Result<void> write_all(const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [path, text] : files)
    if (auto written = write_file_atomically(path, text); !written) return written;
  return {};
}

// By the package, which knows how the engine is used.
Result<std::string> script_of(const std::string& program_path, subject::SubjectCommand command,
                              const SubjectFinding& finding) {
  command.engine = finding.engine;
  command.settings = finding.settings;
  const auto words = subject::package_words(command, {"script", program_path});
  const auto output = subject::run_to_end(words, subject::package_variables(command),
                                          {kScriptLimitNs, was_interrupted});
  if (!output) return tl::unexpected(output.error());
  if (output->exit_code == 0) return output->text;
  return fail(ErrorCode::cannot_run, output->errors.empty() ? "it failed" : output->errors.back());
}

Result<void> write_pictures_of(const std::string& base, const SubjectFinding& finding,
                               const std::string& reproduce) {
  hunt::CorpusEntry entry;
  entry.program = finding.program;
  auto shown = program_picture(entry, {}, "The program on zeroproof's engine");
  if (!shown) return tl::unexpected(shown.error());
  shown->picture.note = finding_text(finding);
  shown->picture.reproduce = reproduce;
  return write_program_pictures(*shown, base);
}

// Whether the finding has a script.
Result<bool> write_finding_files(const std::string& base, const SubjectFinding& finding,
                                 const subject::SubjectCommand& command,
                                 const std::string& reproduce, const Session& session) {
  const std::string program_path = base + ".program.json";
  auto written = write_all({{base + ".json", subject::finding_json(finding)},
                            {program_path, program::program_json(finding.program)}});
  if (!written) return tl::unexpected(written.error());
  const auto script = script_of(program_path, command, finding);
  if (!script) session.say(fmt::format("{}.py: no script: {}", base, script.error().text));
  written = write_all({{base + ".issue.md", issue_text(finding, reproduce, script.value_or(""))}});
  if (written && script) written = write_all({{base + ".py", *script}});
  if (!written) return tl::unexpected(written.error());
  if (auto pictures = write_pictures_of(base, finding, reproduce); !pictures)
    session.say(fmt::format("{}.html: no picture: {}", base, pictures.error().text));
  return script.has_value();
}

}  // namespace

std::string finding_base(const std::string& folder, const SubjectFinding& finding) {
  return fmt::format("{}/{}", folder, finding.file_stem());
}

Result<void> write_hunt_files(const HuntDocument& document, const subject::SubjectCommand& command,
                              const Session& session) {
  const std::string& folder = session.common.out_dir;
  if (folder.empty()) return {};
  if (auto made = make_folder(folder); !made) return made;
  auto written = write_all({{folder + "/hunt.json", hunt_json(document) + "\n"}});
  if (!written) return written;
  HuntPageWords words{
      session.program, fmt::format("{} {}", session.program, session.arguments), {}};
  for (const SubjectFinding& finding : document.report.findings) {
    const std::string reproduce =
        fmt::format("{} {}", session.program, document.reproduce(finding));
    const auto has_script =
        write_finding_files(finding_base(folder, finding), finding, command, reproduce, session);
    if (!has_script) return tl::unexpected(has_script.error());
    if (*has_script) words.scripts.insert(finding.file_stem());
  }
  return write_all({{folder + "/report.html", hunt_page(document, words)}});
}

}  // namespace zeroproof
