#pragma once

#include <string>

#include "props/exploration.h"
#include "props/report/picture/picture.h"

namespace zeroproof {

// Writes for each finding DIR/SCENARIO-POLICY-NUMBER.zps (the scenario as given), its picture as
// .svg (minimised: .html too), and with the
// suffix -min the minimised scenario (.json) and its schedule (.zps). The folder must exist.
// Changes no option; every schedule carries what its run falsified.
Result<void> write_finding_files(const ExplorationReport& report, const std::string& folder);

// Writes the picture as BASE.svg and BASE.html.
Result<void> write_pictures(const Picture& picture, const std::string& base);

}  // namespace zeroproof
