#include "props/cli/hunt_files.h"

#include <fmt/format.h>

#include "engine/files/atomic_file.h"
#include "props/cli/folder.h"
#include "props/cli/interrupt.h"
#include "props/cli/program_picture.h"
#include "props/program/program_json.h"

namespace zeroproof {
namespace {

using subject::SubjectFinding;

constexpr std::int64_t kScriptLimit_ns = 120'000'000'000;

// One after another, until one fails.
Result<void> write_all(const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [path, text] : files)
    if (auto written = write_file_atomically(path, text); !written) return written;
  return {};
}

// By the package, which knows how the engine is used.
Result<void> write_script(const std::string& base, subject::SubjectCommand command,
                          const SubjectFinding& finding) {
  command.engine = finding.engine;
  command.settings = finding.settings;
  const auto words = subject::package_words(command, {"script", base + ".program.json"});
  const auto output = subject::run_to_end(words, subject::package_variables(command),
                                          {kScriptLimit_ns, was_interrupted});
  if (!output) return tl::unexpected(output.error());
  if (output->exit_code == 0) return write_file_atomically(base + ".py", output->text);
  return fail(
      ErrorCode::cannot_run,
      fmt::format("no script: {}", output->errors.empty() ? "it failed" : output->errors.back()));
}

Result<void> write_pictures_of(const std::string& base, const SubjectFinding& finding,
                               const std::string& reproduce) {
  hunt::CorpusEntry entry;
  entry.program = finding.program;
  auto shown = program_picture(entry, {}, "The program on our engine");
  if (!shown) return tl::unexpected(shown.error());
  shown->picture.note = finding_text(finding);
  shown->picture.reproduce = reproduce;
  return write_program_pictures(*shown, base);
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
  auto written = write_file_atomically(folder + "/hunt.json", hunt_json(document) + "\n");
  for (const SubjectFinding& finding : document.report.findings) {
    if (!written) return written;
    const std::string base = finding_base(folder, finding);
    const std::string reproduce =
        fmt::format("{} {}", session.program, document.reproduce(finding));
    written = write_all({{base + ".json", subject::finding_json(finding)},
                         {base + ".program.json", program::program_json(finding.program)},
                         {base + ".issue.md", issue_text(finding, reproduce)}});
    if (!written) return written;
    if (auto script = write_script(base, command, finding); !script)
      session.say(fmt::format("{}.py: {}", base, script.error().text));
    if (auto pictures = write_pictures_of(base, finding, reproduce); !pictures)
      session.say(fmt::format("{}.html: {}", base, pictures.error().text));
  }
  return written;
}

}  // namespace zeroproof
