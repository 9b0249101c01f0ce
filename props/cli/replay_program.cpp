#include "props/cli/replay_program.h"

#include <fmt/format.h>

#include <memory>

#include "engine/files/atomic_file.h"
#include "props/cli/budget.h"
#include "props/cli/shell_quote.h"
#include "props/program/contract.h"
#include "props/program/program_json.h"
#include "props/program/program_text.h"
#include "props/replay/recorded_program.h"
#include "props/replay/trace_paths.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kStepsDefault = 3;

std::string page_of(const RecordedProgram& recorded, const std::string& file) {
  const auto contract = program::Contract::of(recorded.program);
  std::string text = program::program_text(recorded.program, contract ? &*contract : nullptr);
  for (const auto& [what, times] : recorded.left_out)
    text +=
        fmt::format("left out: {}{}\n", what, times > 1 ? fmt::format(" ({} times)", times) : "");
  return text + fmt::format("written: {}; next: zeroproof explore --level program {}\n", file,
                            shell_quote(file));
}

}  // namespace

void RecordedProgramFlags::declare(Flags& flags) {
  flags.add_value(
      "program-out", file_,
      {"FILE", "write the recorded job as a program (zeroproof.program/1), and check no property"});
  flags.add_value("program-steps", steps_,
                  {"N", "--program-out: up to the N-th optimizer step (default 3)"});
}

Result<VerbResult> RecordedProgramFlags::run(const std::vector<std::string>& words) const {
  std::uint64_t steps = kStepsDefault;
  if (!steps_.empty()) {
    const auto given = parse_count(steps_, "replay: --program-steps");
    if (!given) return tl::unexpected(given.error());
    steps = *given;
  }
  std::vector<std::string> paths;
  if (words.size() == 1) {
    auto found = trace_paths(words.front());
    if (!found) return tl::unexpected(found.error());
    paths = std::move(*found);
  }
  if (paths.empty())
    return fail(ErrorCode::usage,
                "replay: --program-out: name the trace of one rank, or one folder with it");
  auto made = program_of_recording(paths.front(), static_cast<std::int64_t>(steps));
  if (!made) return tl::unexpected(made.error());
  const auto recorded = std::make_shared<RecordedProgram>(std::move(*made));
  const std::string document = program::program_json(recorded->program);
  if (auto written = write_file_atomically(file_, document); !written)
    return tl::unexpected(written.error());
  return VerbResult{.code = ExitCode::held,
                    .text = [recorded, file = file_] { return page_of(*recorded, file); },
                    .json = [recorded] { return program::program_line(recorded->program); }};
}

}  // namespace zeroproof
