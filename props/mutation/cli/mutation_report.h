#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "props/hunt/program_hunt.h"
#include "props/mutation/cli/mutation_findings.h"

namespace zeroproof {

// What a hunt came to. Plain data.
struct MutationReport {
  std::vector<hunt::ProgramFound> found;     // a row a fault, found or not
  std::vector<hunt::ProgramFound> findings;  // of the unmutated engine
  hunt::ProgramHunter::Unmutated unmutated;
  std::optional<bool> is_canary_found = std::nullopt;  // where faults were hunted

  HuntFindings for_tools() const { return {found, findings, is_canary_found.value_or(true)}; }
  std::size_t count() const;  // of faults that were found
};

// A finding with its program and the token that replays it.
std::string finding_text(const hunt::ProgramFound& found);

// Tables for a terminal; with the program of each fault that was found, or without.
std::string report_text(const MutationReport& report, bool has_programs);
// The document "zeroproof.mutation/2" (docs/reference/output.md).
std::string report_json(const MutationReport& report);

}  // namespace zeroproof
