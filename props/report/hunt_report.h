#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "props/report/junit.h"
#include "props/report/located_finding.h"
#include "props/subject/subject_hunt.h"

namespace zeroproof {

// A hunt on an engine that is not ours, or the findings of folders.
struct HuntDocument {
  std::uint64_t seed = 0;
  std::string engine;  // "deepspeed stage=2"; empty: several
  std::string versions;
  subject::HuntReport report;
  // The arguments of zeroproof that show a finding again, quoted.
  std::function<std::string(const subject::SubjectFinding&)> reproduce;
};

// For people: a line a signature, then each finding with its program. `program` is how zeroproof
// was called, quoted.
std::string hunt_text(const HuntDocument& document, const std::string& program);
// One finding: signature, difference, versions, program.
std::string finding_text(const subject::SubjectFinding& finding);

// The parts of that text, each without a line end but for the program.
struct FindingParts {
  std::string difference;  // "rank 0 at body/5/step, gradients: …"
  std::string subject;     // engine, settings and versions
  std::string history;     // how sure it is, and how it became small
  std::string program;
};
FindingParts finding_parts(const subject::SubjectFinding& finding);
// The same as the text of an issue, in Markdown. `reproduce` is a whole line; `script` shows the
// finding without zeroproof, or is empty.
std::string issue_text(const subject::SubjectFinding& finding, const std::string& reproduce,
                       const std::string& script);
// "zeroproof.hunt/1" of docs/reference/output.md, without a final line end.
std::string hunt_json(const HuntDocument& document);
// A case a signature.
std::vector<JUnitCase> hunt_cases(const HuntDocument& document);
LocatedFindings located_findings(const HuntDocument& document);

// A finding that ran again.
struct ReplayedFinding {
  std::string source;               // its file
  subject::SubjectFinding finding;  // as the file has it
  std::string versions;             // of this time
  subject::Repetition again;        // of this time
};
std::string hunt_replay_text(const std::vector<ReplayedFinding>& replayed);
// "zeroproof.hunt_replay/1".
std::string hunt_replay_json(const std::vector<ReplayedFinding>& replayed);
std::vector<JUnitCase> hunt_replay_cases(const std::vector<ReplayedFinding>& replayed);

}  // namespace zeroproof
