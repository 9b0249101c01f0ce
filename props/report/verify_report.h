#pragma once

#include <string>
#include <vector>

#include "props/report/explore_text.h"
#include "props/report/junit.h"
#include "props/verify.h"

namespace zeroproof {

// One page for people.
std::string verify_text(const VerifyReport& report, const PageStyle& style);

// The same as Markdown.
std::string verify_markdown(const VerifyReport& report);

// zeroproof.verify/1, see docs/reference/output.md.
std::string verify_json(const VerifyReport& report);

// One case a bundled trace and an exploration.
std::vector<JUnitCase> verify_cases(const VerifyReport& report);

}  // namespace zeroproof
