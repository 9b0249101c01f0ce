#pragma once

#include <string>
#include <vector>

#include "props/verify.h"

namespace zeroproof {

// What a part of verify names: a run, a cell, a fault.
struct VerifyFailure {
  std::string word;  // "FALSIFIED"
  std::string text;  // in one line
};

// One part of verify, for the pages of terminal and browser.
struct VerifyPart {
  std::string verdict;  // "held", "FALSIFIED", "caught", "MISSED"
  std::string name;     // "replay"
  std::string text;     // in one line
  std::vector<VerifyFailure> failures;

  bool is_good() const { return verdict == "held" || verdict == "caught"; }
};

// Those that were run, in their order.
std::vector<VerifyPart> verify_parts(const VerifyReport& report);

}  // namespace zeroproof
