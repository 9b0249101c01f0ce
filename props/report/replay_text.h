#pragma once

#include <cstddef>
#include <string>

#include "props/replay/replay.h"
#include "props/report/palette.h"

namespace zeroproof {

// The report for people: a line a trace with its findings below, a summary, and for each run what
// was compared across its ranks. Of more than two dozen traces those that are alike share a line;
// at most kReplayTextLines lines. Lines end with '\n'.
inline constexpr std::size_t kReplayTextLines = 60;
std::string replay_text(const ReplayReport& report, std::size_t columns, const Palette& palette);

}  // namespace zeroproof
