#pragma once

#include <string>
#include <vector>

#include "props/museum/hunt.h"
#include "props/report/junit.h"
#include "props/report/palette.h"

namespace zeroproof {

// The table of a hunt and its last lines, without the reproduce line.
std::string museum_text(const museum::MuseumReport& report, const Palette& palette);
// "zeroproof.museum/1" (docs/OUTPUT.md).
std::string museum_json(const museum::MuseumReport& report);
std::vector<JUnitCase> museum_cases(const museum::MuseumReport& report);

// Which entries each property catches, and which it alone does: of a report with the matrix.
std::string museum_matrix_text(const museum::MuseumReport& report);

// One specimen again: with the fault and without.
std::string museum_replay_text(const museum::ReadToken& token, const museum::TrialResult& planted,
                               const museum::TrialResult& healthy);
// "zeroproof.museum_replay/1" (docs/OUTPUT.md).
std::string museum_replay_json(const museum::ReadToken& token, const museum::TrialResult& planted,
                               const museum::TrialResult& healthy);

}  // namespace zeroproof
