#pragma once

#include <string>
#include <vector>

#include "props/reference/findings.h"
#include "props/reference/world.h"
#include "zeroproof/model/result.h"

namespace zeroproof::reference {

// What the walker says about one recorded rank.
struct WalkedRecording {
  bool is_walked = false;
  std::string reason;  // why it is not: no stage in the header, several engines
  std::vector<Finding> findings;
  Coverage coverage;
};

// Reads a trace twice: first what its header, records and marks say about configuration and tables,
// then its events. What they do not say stays open. The error is the reader's.
Result<WalkedRecording> walk_recording(const std::string& path);

}  // namespace zeroproof::reference
