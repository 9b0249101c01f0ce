#include "props/cli/program_picture.h"

#include <algorithm>
#include <vector>

#include "engine/files/atomic_file.h"
#include "props/cli/engine_picture.h"
#include "props/cli/finding_files.h"
#include "props/cli/scratch_folder.h"
#include "props/program/program_text.h"
#include "props/replay/replay.h"
#include "props/report/picture/pictures.h"
#include "props/report/replay_findings.h"
#include "sim/trace/perfetto.h"

namespace zeroproof {
namespace {

using Paths = std::vector<std::string>;

// What the recording itself shows of the rules, with file and event.
Result<LocatedFindings> recorded_findings(const Paths& paths) {
  Replay replay({.levels = ReplayLevels{false, false, true}});
  for (const std::string& path : paths)
    if (auto added = replay.add(path); !added) return tl::unexpected(added.error());
  return located_findings(replay.finish());
}

// Whether the recording places it; then it does.
bool place(LocatedFinding& finding, const LocatedFindings& recorded) {
  const auto at = std::ranges::find_if(recorded, [&](const LocatedFinding& one) {
    return one.rule == finding.rule && (finding.rank < 0 || one.rank == finding.rank);
  });
  if (at == recorded.end()) return false;
  finding.file = at->file;
  finding.rank = at->rank;
  finding.lc = at->lc;
  finding.call = at->call;
  return true;
}

Result<std::string> perfetto_of(const Paths& paths) {
  NameTable names;
  auto readers = open_traces(paths, names);
  if (!readers) return tl::unexpected(readers.error());
  std::string document;
  const auto counts = export_perfetto(*readers, names, [&](std::string_view piece) {
    document += piece;
    return Result<void>{};
  });
  if (!counts) return tl::unexpected(counts.error());
  return document;
}

}  // namespace

Result<ProgramPicture> program_picture(const hunt::CorpusEntry& entry,
                                       const program::EngineVariant& variant,
                                       const std::string& title) {
  const auto entry_case = hunt::CorpusCase::make(entry);
  if (!entry_case) return tl::unexpected(entry_case.error());
  const ScratchFolder scratch;
  const auto paths = entry_case->record(variant, scratch.path() + "/run.jsonl");
  if (!paths) return tl::unexpected(paths.error());
  const auto recorded = recorded_findings(*paths);
  if (!recorded) return tl::unexpected(recorded.error());
  LocatedFindings at_events;
  LocatedFindings elsewhere;
  for (const hunt::Falsified& falsified : entry_case->run(variant).falsified) {
    LocatedFinding finding = located_finding(
        {.property = falsified.property, .rank = falsified.rank, .text = falsified.text});
    LocatedFindings& list = place(finding, *recorded) ? at_events : elsewhere;
    list.push_back(std::move(finding));
  }
  auto picture = trace_picture(*paths, at_events, {});
  if (!picture) return tl::unexpected(picture.error());
  mark_last_events(elsewhere, *picture);
  forget_files(*picture);
  const program::RunnableProgram& runnable = entry_case->runnable();
  picture->title = title;
  picture->source = program::program_text(runnable.program(), &runnable.contract());
  auto perfetto = perfetto_of(*paths);
  if (!perfetto) return tl::unexpected(perfetto.error());
  return ProgramPicture{std::move(*picture), std::move(*perfetto)};
}

Result<void> write_program_pictures(const ProgramPicture& picture, const std::string& base) {
  if (auto written = write_file_atomically(base + ".perfetto.json", picture.perfetto); !written)
    return written;
  return write_pictures(picture.picture, base);
}

}  // namespace zeroproof
