#pragma once

#include <string>

#include "props/museum/hunt.h"
#include "props/report/located_finding.h"
#include "props/report/picture/picture.h"

namespace zeroproof {

// One specimen of the museum, run once more with its fault and recorded.
struct SpecimenShown {
  Picture picture;
  std::string perfetto;  // the same as a Chrome trace-event document
};

// What shows a specimen again. `program`: how the command was called.
std::string replay_command(const museum::ReadToken& token, const std::string& program);

// Findings are marked at the event that `replay` of the recording names for their rule, or at the
// last one of their rank. `program`: as of replay_command().
Result<SpecimenShown> show_specimen(const museum::ReadToken& token, const LocatedFindings& findings,
                                    const std::string& program);

// DIR/ID.json (the case), .zps (the schedule), .svg, .html and .perfetto.json. The folder exists.
Result<void> write_specimen_files(const museum::ReadToken& token, const SpecimenShown& shown,
                                  const std::string& folder);

}  // namespace zeroproof
