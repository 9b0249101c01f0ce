#pragma once

#include <string>
#include <vector>

#include "props/mutation/hunt.h"
#include "props/report/junit.h"
#include "props/report/palette.h"

namespace zeroproof {

// The table of a hunt and its last lines, without the reproduce line.
std::string hunt_text(const mutation::HuntReport& report, const Palette& palette);
// "zeroproof.mutation/1" (docs/OUTPUT.md).
std::string hunt_json(const mutation::HuntReport& report);
std::vector<JUnitCase> hunt_cases(const mutation::HuntReport& report);

// Which faults each property catches, and which it alone does: of a report with the matrix.
std::string hunt_matrix_text(const mutation::HuntReport& report);

// One counterexample again: with the fault and without.
std::string hunt_replay_text(const mutation::ReadToken& token, const mutation::CaseResult& mutated,
                             const mutation::CaseResult& unmutated);
// "zeroproof.mutation_replay/1" (docs/OUTPUT.md).
std::string hunt_replay_json(const mutation::ReadToken& token, const mutation::CaseResult& mutated,
                             const mutation::CaseResult& unmutated);

}  // namespace zeroproof
