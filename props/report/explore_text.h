#pragma once

#include <string>
#include <vector>

#include "props/exploration.h"
#include "props/replay/schedule_replay.h"
#include "props/report/palette.h"

namespace zeroproof {

// How a page is laid out.
struct PageStyle {
  std::size_t columns = 100;
  Palette palette;
};

// One exploration: what was searched, verdicts, and each finding with its minimised timeline.
std::string explore_text(const ExplorationReport& report, const PageStyle& style);

// Many explorations as a table, scenarios down, policies across; every cell "held" or the
// numbers of the falsified properties, which are explained below.
std::string explore_table(const std::vector<ExplorationReport>& reports, const PageStyle& style);

// A schedule that ran again: its verdicts and its timeline, the bad moments marked.
std::string schedule_text_page(const ScheduleReplay& replay, const PageStyle& style);

}  // namespace zeroproof
