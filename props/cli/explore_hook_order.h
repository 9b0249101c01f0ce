#pragma once

#include <string>
#include <vector>

#include "props/cli/verb.h"

namespace zeroproof {

// What `explore hook_order` was asked for (docs/explanation/how_orders_are_explored.md).
struct HookOrderFlags {
  std::vector<std::string> settings;
  std::string scheduler;
  std::string budget;
  bool skips_reduction = false;
};

Result<VerbResult> run_hook_order(const HookOrderFlags& flags, Session& session);

}  // namespace zeroproof
