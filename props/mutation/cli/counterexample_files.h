#pragma once

#include <string>

#include "props/mutation/hunt.h"
#include "props/report/located_finding.h"
#include "props/report/picture/picture.h"

namespace zeroproof {

// One counterexample of a mutated engine, run once more with its fault and recorded.
struct CounterexampleShown {
  Picture picture;
  std::string perfetto;  // the same as a Chrome trace-event document
};

// What shows a counterexample again. `program`: how the command was called.
std::string replay_command(const mutation::ReadToken& token, const std::string& program);

// Findings are marked at the event that `replay` of the recording names for their rule, or at the
// last one of their rank. `program`: as of replay_command().
Result<CounterexampleShown> show_counterexample(const mutation::ReadToken& token,
                                                const LocatedFindings& findings,
                                                const std::string& program);

// DIR/ID.json (the case), .zps (the schedule), .svg, .html and .perfetto.json. The folder exists.
Result<void> write_counterexample_files(const mutation::ReadToken& token,
                                        const CounterexampleShown& shown,
                                        const std::string& folder);

}  // namespace zeroproof
