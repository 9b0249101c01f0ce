#pragma once

#include <string>
#include <vector>

#include "props/cli/verb.h"
#include "props/report/hunt_report.h"
#include "props/subject/subject_process.h"

namespace zeroproof {

// Where a finding's files are: FOLDER/STEM.
std::string finding_base(const std::string& folder, const subject::SubjectFinding& finding);

// Writes into --out, which is made: hunt.json, report.html, and of each finding STEM.json (the
// finding), STEM.program.json, STEM.issue.md, STEM.py (a script without zeroproof), and the run of
// its program on our engine as STEM.html, .svg and .perfetto.json. What cannot be made of a finding
// is said on stderr.
Result<void> write_hunt_files(const HuntDocument& document, const subject::SubjectCommand& command,
                              const Session& session);

}  // namespace zeroproof
