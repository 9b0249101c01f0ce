#pragma once

#include <string>
#include <vector>

#include "props/report/verify_report.h"

namespace zeroproof {

// One part of verify, as the page for the terminal has it.
struct VerifyPart {
  std::string verdict;  // "held", "MISSED"
  std::string name;     // "replay"
  std::string text;
  std::vector<std::string> failures;  // a line each

  bool is_good() const { return verdict == "held" || verdict == "caught"; }
};

// Read from verify_parts_text, so that the pages for terminal and browser cannot differ.
std::vector<VerifyPart> verify_parts(const VerifyReport& report);

}  // namespace zeroproof
