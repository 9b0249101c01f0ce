#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/exploration.h"
#include "props/replay/replay.h"
#include "props/replay/schedule_replay.h"
#include "props/report/diagnosis_report.h"

namespace zeroproof {

// The documents of docs/reference/output.md: one line-broken JSON object each, without a final line
// end. Field names are a public contract; equal reports give equal bytes.

// `schedules`: those that ran again in the same call, usually none.
std::string replay_json(const ReplayReport& report, const std::vector<ScheduleReplay>& schedules,
                        const ReplayAnswers& answers);

std::string explore_json(const std::vector<ExplorationReport>& reports, std::uint64_t seed);

}  // namespace zeroproof
