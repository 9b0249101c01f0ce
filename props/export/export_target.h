#pragma once

#include <string>
#include <vector>

#include "props/export/torch_script.h"
#include "props/scenario.h"
#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

struct ExportTargetOptions {
  std::string policy;              // empty: the schedule's; none with a bare scenario
  std::optional<PolicyMode> mode;  // nullopt: the schedule's, else callbacks
  std::string property;            // "P7" or an id: only this one is claimed
  bool minimizes = true;
};

// What a word names: a scenario as it will be exported and what it is known to break.
struct ExportTarget {
  Scenario scenario;
  std::string policy;  // empty: the scenario was not searched for what it breaks
  PolicyMode mode = PolicyMode::graph_task_callback;
  std::vector<ScriptClaim> claims;
  std::vector<std::string> elsewhere;  // falsified in orders that PyTorch does not take
  bool is_minimized = false;
};

// `word`: the id or path of a scenario, a minimised one of `explore --out` among them, or a
// schedule
// (*.zps, zps1:...). With a policy the scenario is searched in the one order that PyTorch takes,
// and what is falsified there becomes the claims and, by default, is minimised. Error of
// code usage when the word names no target, or --property names what is not falsified.
Result<ExportTarget> export_target(const std::string& word, const ExportTargetOptions& options);

}  // namespace zeroproof
