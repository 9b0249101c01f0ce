#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "props/report/junit.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// What verify says of a hunt for faults that another program has run. Plain data.
struct MutationRow {
  struct Missed {
    std::string id;
    std::string sentence;
  };

  std::size_t faults = 0;
  std::size_t found = 0;
  std::vector<Missed> missed;
  bool is_canary_found = false;
  std::uint64_t unmutated_executions = 0;
  std::vector<std::string> unmutated_findings;

  bool is_good() const { return is_canary_found && missed.empty() && unmutated_findings.empty(); }
};

// From the document "zeroproof.mutation/2" (docs/reference/output.md).
Result<MutationRow> parse_mutation_row(std::string_view json);

// One case a fault that was missed, one for all that were found, the canary, the unmutated engine.
std::vector<JUnitCase> mutation_cases(const MutationRow& row);

}  // namespace zeroproof
