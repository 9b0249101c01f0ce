#include "props/cli/show_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "engine/files/atomic_file.h"
#include "props/cli/engine_picture.h"
#include "props/cli/explore_program.h"
#include "props/cli/interrupt.h"
#include "props/cli/mutated_engine.h"
#include "props/cli/program_picture.h"
#include "props/cli/replay_engine.h"
#include "props/cli/shell_quote.h"
#include "props/replay/replay.h"
#include "props/replay/schedule_replay.h"
#include "props/replay/trace_paths.h"
#include "props/report/html.h"
#include "props/report/picture/pictures.h"
#include "props/report/replay_findings.h"
#include "props/report/search_findings.h"
#include "props/report/svg.h"

namespace zeroproof {
namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& word) {
  std::error_code error;
  return fs::is_directory(word, error);
}

// The file that --out names; in a folder one of our own name.
std::string file_in(const std::string& out, const std::string& form) {
  return is_folder(out) || out.ends_with('/') ? (fs::path(out) / ("show." + form)).string() : out;
}

bool is_any_schedule(const std::string& word) {
  return is_schedule_word(word) || is_zero_epilogue_word(word) || is_program_file(word);
}

}  // namespace

void ShowPicture::declare(Flags& flags) {
  flags.add_switch("html", is_html_, "write a page for a browser to stdout, or to --out FILE");
  flags.add_switch("svg", is_svg_, "write a chart to stdout, or to --out FILE");
}

bool ShowPicture::is_meant(const std::vector<std::string>& words) const {
  return is_html_ || is_svg_ || words.size() > 1 ||
         (!words.empty() && (is_folder(words.front()) || is_any_schedule(words.front())));
}

Result<VerbResult> ShowPicture::run(const std::vector<std::string>& words,
                                    const EventFilter& filter, bool shows_all, Session& session) {
  if (is_html_ && is_svg_) return fail(ErrorCode::usage, "show: --html or --svg, not both");
  const std::string form = is_html_ ? "html" : is_svg_ ? "svg" : "text";
  if (session.common.wants_json) {
    return fail(ErrorCode::usage, "show: --json shows one trace; convert or replay take several");
  }
  const bool is_schedule = std::any_of(words.begin(), words.end(), is_any_schedule);
  if (is_schedule && words.size() > 1) {
    return fail(ErrorCode::usage, "show: name one schedule, or traces");
  }
  if (is_schedule && filter.is_given())
    return fail(ErrorCode::usage,
                "show: --rank, --gt, --kind, --from and --to choose events of traces; a schedule "
                "or a program is shown whole");
  auto shown = is_schedule ? show_schedule(words.front(), session) : show_traces(words, filter);
  if (!shown) return tl::unexpected(shown.error());
  return write(std::move(*shown), form, shows_all || filter.has_kinds(), session);
}

Result<ShowPicture::Shown> ShowPicture::show_traces(const std::vector<std::string>& words,
                                                    const EventFilter& filter) const {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    const auto found = trace_paths(word);
    if (!found) return tl::unexpected(found.error());
    paths.insert(paths.end(), found->begin(), found->end());
  }
  Replay replay({}, was_interrupted);
  for (const std::string& path : paths) {
    if (auto added = replay.add(path); !added) return tl::unexpected(added.error());
  }
  const ReplayReport report = replay.finish();
  const TracePictureOptions options{
      .shows = [&filter](const HookEvent& event) { return filter.passes(event); }};
  auto picture = trace_picture(paths, located_findings(report), options);
  if (!picture) return tl::unexpected(picture.error());
  const bool is_whole = report.summary().unreadable == 0;
  return Shown{std::move(*picture), is_whole ? ExitCode::held : ExitCode::unreadable};
}

Result<ShowPicture::Shown> ShowPicture::show_schedule(const std::string& word,
                                                      const Session& session) {
  if (is_program_file(word)) return show_program(word, session);
  if (is_zero_epilogue_word(word)) return show_common_model(word);
  if (EngineReplayVerb::is_meant({word})) return show_engine_schedule(word, session);
  const auto replay = replay_schedule(word, {});
  if (!replay) return tl::unexpected(replay.error());
  const std::string command = fmt::format("{} replay {}", session.program, shell_quote(word));
  return Shown{run_picture(*replay, command), ExitCode::held};
}

Result<ShowPicture::Shown> ShowPicture::show_engine_schedule(const std::string& word,
                                                             const Session& session) {
  const auto schedule = EngineReplayVerb::schedule_in(word);
  if (!schedule) return tl::unexpected(schedule.error());
  const auto replay = train::replay_engine(word, *schedule, train::Beside::nothing);
  if (!replay) return tl::unexpected(replay.error());
  auto picture = engine_schedule_picture(
      *schedule, located_findings(std::vector<train::EngineReplay>{*replay}));
  if (!picture) return tl::unexpected(picture.error());
  picture->reproduce = fmt::format("{} replay {}", session.program, shell_quote(word));
  return Shown{std::move(*picture), ExitCode::held};
}

Result<ShowPicture::Shown> ShowPicture::show_program(const std::string& path,
                                                     const Session& session) {
  const auto entry = read_program_entry(path);
  if (!entry) return tl::unexpected(entry.error());
  const auto variant = variant_of_fault(entry->fault);
  if (!variant) return tl::unexpected(variant.error());
  auto shown = program_picture(*entry, *variant, path);
  if (!shown) return tl::unexpected(shown.error());
  const std::string verb = entry->fault.empty() ? "replay" : "mutation --replay";
  shown->picture.reproduce = fmt::format("{} {} {}", session.program, verb, shell_quote(path));
  return Shown{std::move(shown->picture), ExitCode::held};
}

Result<ShowPicture::Shown> ShowPicture::show_common_model(const std::string& word) {
  const auto replay = replay_zero_epilogue(word);
  if (!replay) return tl::unexpected(replay.error());
  if (replay->report.findings.empty()) {
    return fail(ErrorCode::usage, fmt::format("show: '{}' violates no property any more", word));
  }
  return Shown{finding_picture(replay->report, replay->report.findings.front()), ExitCode::held};
}

Result<VerbResult> ShowPicture::write(Shown shown, const std::string& form, bool shows_all,
                                      Session& session) const {
  const auto picture = std::make_shared<const Picture>(std::move(shown.picture));
  const auto page = [picture, form, shows_all, &session] {
    if (form == "html") return picture_html(*picture);
    if (form == "svg") return picture_svg(*picture, {.shows_details = shows_all});
    return session.palette.title(picture->title) + "\n  " + picture->note + "\n\n" +
           picture_text(*picture, {.columns = std::max<std::size_t>(session.terminal.columns, 60),
                                   .shows_details = shows_all,
                                   .palette = session.palette});
  };
  VerbResult result{.code = shown.code, .text = page, .has_written_out = true};
  if (session.common.out_dir.empty()) return result;
  const std::string path = file_in(session.common.out_dir, form == "text" ? "txt" : form);
  if (auto written = write_file_atomically(path, page()); !written) {
    return tl::unexpected(written.error());
  }
  result.text = [picture, path] {
    return fmt::format("{}: {} events, {} findings\n", path, picture->events.size(),
                       picture->findings.size());
  };
  return result;
}

}  // namespace zeroproof
