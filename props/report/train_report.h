#pragma once

#include <string>
#include <vector>

#include "props/report/junit.h"
#include "props/report/palette.h"
#include "props/train/matrix.h"

namespace zeroproof {

// The reports of `zeroproof train`: for people, and "zeroproof.train/1" and "zeroproof.matrix/1" of
// docs/reference/output.md without a final line end.
std::string train_text(const train::TrainReport& report, const Palette& palette);
std::string train_json(const train::TrainReport& report);

std::string matrix_text(const train::MatrixReport& report, const Palette& palette);
std::string matrix_json(const train::MatrixReport& report);

// One case a cell; one that is refused as documented passes.
std::vector<JUnitCase> train_cases(const std::vector<train::TrainReport>& cells);

}  // namespace zeroproof
