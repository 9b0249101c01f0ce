#include "props/cli/finding_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "engine/files/atomic_file.h"
#include "props/replay/schedule_replay.h"
#include "props/report/html.h"
#include "props/report/picture/pictures.h"
#include "props/report/svg.h"

namespace zeroproof {
namespace {

Result<void> write_minimized(const ExplorationFinding& finding, const MakePolicy& make_policy,
                             const std::string& base) {
  const std::string scenario_path = base + "-min.json";
  auto written = write_file_atomically(scenario_path, scenario_text(finding.minimized));
  if (!written) return written;
  const auto run = run_schedule(finding.minimized_schedule, finding.minimized, make_policy);
  if (!run) return tl::unexpected(run.error());
  Schedule schedule = expecting(finding.minimized_schedule, run->verdicts);
  schedule.scenario = scenario_path;
  return write_schedule_file(schedule, base + "-min.zps");
}

}  // namespace

Result<void> write_pictures(const Picture& picture, const std::string& base) {
  auto written = write_file_atomically(base + ".svg", picture_svg(picture));
  if (!written) return written;
  return write_file_atomically(base + ".html", picture_html(picture));
}

Result<void> write_finding_files(const ExplorationReport& report, const std::string& folder) {
  for (const ExplorationFinding& finding : report.findings) {
    const std::string stem = std::filesystem::path(report.options.scenario).stem().string();
    const std::string base =
        fmt::format("{}/{}-{}-{}", folder, stem, report.options.policy, finding.property->number);
    if (auto written = write_schedule_file(finding.schedule, base + ".zps"); !written) {
      return written;
    }
    const Picture picture = finding_picture(report, finding);
    if (!report.options.minimizes) {
      auto written = write_file_atomically(base + ".svg", picture_svg(picture));
      if (!written) return written;
      continue;
    }
    if (auto written = write_pictures(picture, base); !written) return written;
    if (auto written = write_minimized(finding, report.options.make_policy, base); !written)
      return written;
  }
  return {};
}

}  // namespace zeroproof
