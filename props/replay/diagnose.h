#pragma once

#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/replay.h"

namespace zeroproof {

// The findings of a replay in words: one entry a cause, one for what all ranks share, the gravest
// first. Reads the files of its findings again, for the moments around them, and the ranks of a run
// side by side where they do not agree.
std::vector<Diagnosis> diagnose(const ReplayReport& report);

// A trace whose rank a defect names does not agree.
void mark_defects(ReplayReport& report, const std::vector<Diagnosis>& diagnosis);

}  // namespace zeroproof
