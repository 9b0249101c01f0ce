#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zeroproof/engine/hooks/policies.h"
#include "zeroproof/model/ids.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// Gradients that would not have been reduced before they were used.
struct WhatIfMiss {
  EngineId engine;
  std::uint64_t lc = 0;  // of the step, or of the end of the trace
  std::vector<std::string> params;
};

// What a policy would have done with the hooks of a recorded job.
struct WhatIfReport {
  std::string path;
  std::string policy;
  PolicyMode mode = PolicyMode::graph_task_callback;
  std::uint64_t hooks = 0;
  std::uint64_t backwards = 0;  // outermost graph tasks in which hooks ran
  std::uint64_t epilogues = 0;
  std::uint64_t early_epilogues = 0;  // followed by hooks of the same backward
  std::vector<WhatIfMiss> missed;
  std::vector<std::string> lines;  // in words

  bool is_applicable() const { return hooks > 0; }
};

// Drives a policy, one object an engine, with the recorded forwards, graph tasks, output hooks and
// gradient hooks in their recorded order; what the recorded policy did with them is left out. Reads
// the file twice: how many hooks a task will fire is known after the first time. Memory grows with
// the number of graph tasks, not of events.
// Error: code usage when the policy does not exist or not in that mode, unreadable for the file.
Result<WhatIfReport> what_if(const std::string& path, const std::string& policy, PolicyMode mode);

}  // namespace zeroproof
