#include "props/cli/engine_picture.h"

#include <fmt/format.h>
#include "props/cli/scratch_folder.h"
#include "props/report/picture/pictures.h"
#include "props/report/text.h"
#include "props/train/schedule_traces.h"

namespace zeroproof {

void mark_last_events(const LocatedFindings& findings, Picture& picture) {
  for (const LocatedFinding& finding : findings) {
    std::int64_t last = -1;
    for (std::size_t i = 0; i < picture.events.size(); ++i) {
      const std::int32_t rank = picture.processes[picture.events[i].process].rank;
      const bool is_later =
          last < 0 || picture.events[i].tick >= picture.events[static_cast<std::size_t>(last)].tick;
      if ((finding.rank < 0 || rank == finding.rank) && is_later)
        last = static_cast<std::int64_t>(i);
    }
    picture.findings.push_back(
        {.event = last,
         .number = finding.number.empty() ? finding.rule.substr(finding.rule.find('.') + 1)
                                          : finding.number,
         .id = finding.rule,
         .statement = finding.statement,
         .text = visible(finding.text),
         .where = finding.rank < 0 ? "all ranks" : fmt::format("rank {}", finding.rank)});
  }
}

void forget_files(Picture& picture) {
  for (PictureProcess& process : picture.processes) process.facts.pop_back();
}

Result<Picture> engine_schedule_picture(const Schedule& schedule, const LocatedFindings& findings) {
  const ScratchFolder scratch;
  const auto paths = train::write_schedule_traces(schedule, scratch.path() + "/run.jsonl");
  if (!paths) return tl::unexpected(paths.error());
  auto picture = trace_picture(*paths, {}, {});
  if (!picture) return picture;
  mark_last_events(findings, *picture);
  forget_files(*picture);
  return picture;
}

}  // namespace zeroproof
