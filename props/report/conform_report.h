#pragma once

#include <string>
#include <vector>

#include "props/conform/conform.h"
#include "props/report/junit.h"
#include "props/report/palette.h"

namespace zeroproof {

// The report for people: a line a program, then a summary that says what is not ported.
std::string conform_text(const ConformReport& report, const Palette& palette);

// "zeroproof.conform/1" of docs/reference/output.md, without a final line end.
std::string conform_json(const ConformReport& report);

// One case a trace; a program that is not ported is skipped.
std::vector<JUnitCase> conform_cases(const ConformReport& report);

}  // namespace zeroproof
