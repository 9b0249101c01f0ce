#pragma once

#include <string>
#include <string_view>

#include "props/report/located_finding.h"

namespace zeroproof {

// Workflow commands of GitHub, one line a finding: ::error file=…,line=…,title=…::text.
std::string github_annotations(const LocatedFindings& findings);

// A Markdown page for the summary of a step: a table of the findings, or that there are none.
std::string github_summary(std::string_view run, const LocatedFindings& findings);

}  // namespace zeroproof
