#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "props/replay/replay.h"
#include "props/report/palette.h"

namespace zeroproof {

// The report for people: a line a trace with its findings below, a summary, and for each run what
// was compared across its ranks. Of more than two dozen traces those that are alike share a line;
// at most kReplayTextLines lines. Lines end with '\n'.
inline constexpr std::size_t kReplayTextLines = 60;
std::string replay_text(const ReplayReport& report, std::size_t columns, const Palette& palette);

// Traces of one run of which the same is to be said.
struct AlikeTraces {
  const TraceReplay* first = nullptr;  // of the report
  std::string levels = {};             // "properties 31 held", of each of them
  std::size_t count = 0;
  std::vector<std::int32_t> ranks = {};  // ascending
};

// Those with findings first.
std::vector<AlikeTraces> alike_traces(const ReplayReport& report);

}  // namespace zeroproof
