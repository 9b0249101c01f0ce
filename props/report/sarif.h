#pragma once

#include <string>
#include <string_view>

#include "props/report/located_finding.h"

namespace zeroproof {

// A SARIF 2.1.0 log with one run, as code scanning services read it, without a final line end.
// `run` names what ran ("zeroproof replay"), `version` is ours. Equal input gives equal bytes.
std::string sarif_text(std::string_view run, std::string_view version,
                       const LocatedFindings& findings);

}  // namespace zeroproof
