#pragma once

#include <string>
#include <vector>

#include "props/report/located_finding.h"
#include "props/verify.h"

namespace zeroproof {

// A file of the report, with its path below the report's folder.
struct ReportPage {
  std::string path;
  std::string text;
};

// index.html, and a page for everything that was found: an exploration that falsified properties
// (its orders as charts), a trace with findings (its lanes). They link to one another by relative
// paths and are self-contained.
std::vector<ReportPage> verify_pages(const VerifyReport& report);

// What makes verify fail: differences from what is expected. Upstream's known defects are none.
LocatedFindings located_findings(const VerifyReport& report);

}  // namespace zeroproof
