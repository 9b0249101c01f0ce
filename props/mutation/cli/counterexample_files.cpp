#include "props/mutation/cli/counterexample_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/files/atomic_file.h"
#include "props/cli/engine_picture.h"
#include "props/cli/finding_files.h"
#include "props/cli/scratch_folder.h"
#include "props/cli/shell_quote.h"
#include "props/mutation/counterexample_traces.h"
#include "props/replay/replay.h"
#include "props/report/picture/pictures.h"
#include "props/report/replay_findings.h"
#include "sim/trace/perfetto.h"

namespace zeroproof {
namespace {

// What the recording itself shows of these rules, with file and event.
Result<LocatedFindings> recorded_findings(const std::vector<std::string>& paths) {
  Replay replay({.levels = ReplayLevels{false, false, true}});
  for (const std::string& path : paths)
    if (auto added = replay.add(path); !added) return tl::unexpected(added.error());
  return located_findings(replay.finish());
}

// Those that the recording places, and the others.
struct Placed {
  LocatedFindings at_events;
  LocatedFindings elsewhere;
};

Placed place(const LocatedFindings& findings, const LocatedFindings& recorded) {
  Placed placed;
  for (const LocatedFinding& finding : findings) {
    const auto is_it = [&](const LocatedFinding& one) {
      return one.rule == finding.rule && (finding.rank < 0 || one.rank == finding.rank);
    };
    const auto at = std::ranges::find_if(recorded, is_it);
    if (at == recorded.end()) {
      placed.elsewhere.push_back(finding);
      continue;
    }
    LocatedFinding& known = placed.at_events.emplace_back(finding);
    known.level = FindingLevel::error;
    known.file = at->file;
    known.rank = at->rank;
    known.lc = at->lc;
    known.call = at->call;
  }
  return placed;
}

Result<std::string> perfetto_of(const std::vector<std::string>& paths) {
  NameTable names;
  std::vector<TraceReader> readers;
  for (const std::string& path : paths) {
    auto reader = TraceReader::open(path, names);
    if (!reader) return tl::unexpected(reader.error());
    readers.push_back(std::move(*reader));
  }
  std::string document;
  const auto counts = export_perfetto(readers, names, [&](std::string_view piece) {
    document += piece;
    return Result<void>{};
  });
  if (!counts) return tl::unexpected(counts.error());
  return document;
}

std::string title_of(const mutation::ReadToken& token) {
  return fmt::format("mutation {} · stage {} · {} rank{}", token.id,
                     token.counterexample.spec.stage, token.counterexample.spec.world_size(),
                     token.counterexample.spec.world_size() == 1 ? "" : "s");
}

}  // namespace

std::string replay_command(const mutation::ReadToken& token, const std::string& program) {
  return fmt::format("{} mutation {} --replay {}", program, token.id,
                     shell_quote(mutation::token_of(token.counterexample, token.id)));
}

Result<CounterexampleShown> show_counterexample(const mutation::ReadToken& token,
                                                const LocatedFindings& findings,
                                                const std::string& program) {
  const mutation::Fault* const fault = mutation::find_fault(token.id);
  if (!fault) return fail(ErrorCode::usage, "the engine has no fault '" + token.id + "'");
  const ScratchFolder scratch;
  const auto paths = mutation::write_counterexample_traces(token.counterexample, fault,
                                                           scratch.path() + "/run.jsonl");
  if (!paths) return tl::unexpected(paths.error());
  const auto recorded = recorded_findings(*paths);
  if (!recorded) return tl::unexpected(recorded.error());
  const Placed placed = place(findings, *recorded);
  auto picture = trace_picture(*paths, placed.at_events, {});
  if (!picture) return tl::unexpected(picture.error());
  mark_last_events(placed.elsewhere, *picture);
  forget_files(*picture);
  picture->title = title_of(token);
  picture->note = fmt::format("mutated: {}", fault->sentence);
  picture->reproduce = replay_command(token, program);
  auto perfetto = perfetto_of(*paths);
  if (!perfetto) return tl::unexpected(perfetto.error());
  return CounterexampleShown{std::move(*picture), std::move(*perfetto)};
}

Result<void> write_counterexample_files(const mutation::ReadToken& token,
                                        const CounterexampleShown& shown,
                                        const std::string& folder) {
  const std::string base = fmt::format("{}/{}", folder, token.id);
  const std::string json = train::case_json(token.counterexample.spec) + "\n";
  if (auto written = write_file_atomically(base + ".json", json); !written) return written;
  const auto schedule = parse_schedule(mutation::token_of(token.counterexample, token.id), base);
  if (!schedule) return tl::unexpected(schedule.error());
  if (auto written = write_schedule_file(*schedule, base + ".zps"); !written) return written;
  if (auto written = write_file_atomically(base + ".perfetto.json", shown.perfetto); !written)
    return written;
  return write_pictures(shown.picture, base);
}

}  // namespace zeroproof
