#pragma once

#include <string>

#include "props/replay/replay.h"
#include "props/report/palette.h"

namespace zeroproof {

// The report for people: a line a trace, findings below theirs, a summary. Lines end with '\n'.
std::string replay_text(const ReplayReport& report, const Palette& palette);

}  // namespace zeroproof
