#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "props/scenario.h"
#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// What the script runs the scenario under.
enum class ScriptFramework { deepspeed, ddp, fsdp2 };

// "deepspeed", "ddp", "fsdp2"; "torch" is "ddp". Error of code usage otherwise.
Result<ScriptFramework> script_framework_of(std::string_view name);
std::string_view script_framework_name(ScriptFramework framework);

// One property that the scenario breaks: its number and its statement.
using ScriptClaim = std::pair<std::string, std::string>;

struct TorchScriptOptions {
  ScriptFramework framework = ScriptFramework::deepspeed;
  std::int64_t stage = 1;  // DeepSpeed only, 1 to 3
  std::int64_t world_size = 1;
  std::int64_t accumulation_steps = 1;
  PolicyMode mode = PolicyMode::graph_task_callback;
  bool has_overlap = false;           // overlap_comm
  bool has_unused_detection = false;  // DDP: find_unused_parameters
  bool has_static_graph = false;      // DDP: static_graph
  std::vector<ScriptClaim> claims;    // empty: any difference from plain PyTorch counts
  std::string note;                   // lines for the head of the script; no ''' in them
};

// A Python program that does what the scenario does, with the model built from the scenario's
// graphs, once with plain PyTorch and once under the framework. It prints what it observed against
// what was expected and exits with 1 when a claimed property is broken, 0 when not, 77 when the
// framework cannot be imported. Error of code usage: Python cannot express the scenario.
Result<std::string> torch_script(const Scenario& scenario, const TorchScriptOptions& options);

// The part that is the same in every script (props/export/harness.py).
std::string_view torch_harness();

}  // namespace zeroproof
