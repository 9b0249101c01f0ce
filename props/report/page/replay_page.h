#pragma once

#include <string>

#include "props/replay/replay.h"
#include "props/report/diagnosis_report.h"

namespace zeroproof {

// What a replay found as one page: the first cause with its timeline, the other causes, the ranks.
// Reads the files of the first cause again. `asked` is the command.
std::string replay_page(const ReplayReport& report, const ReplayAnswers& answers,
                        const std::string& asked);

}  // namespace zeroproof
