#pragma once

#include <functional>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/lane_group.h"

namespace zeroproof {

struct ReplicaComparison {
  std::vector<Diagnosis> found;
  std::vector<std::string> checked;
  std::vector<std::string> skipped;
};

// Ranks that hold replicas of one model (DDP, FSDP2, ZeRO): the parameters that they declare, and
// whether those are trained. A difference comes before whatever follows from it.
ReplicaComparison compare_declared_parameters(const std::vector<RunMember>& members);

// Their optimizer steps, and where it is a rule, the order of gradient hooks: differences that no
// collective shows.
ReplicaComparison compare_steps_and_hooks(const std::vector<RunMember>& members,
                                          const std::function<bool()>& should_stop);

}  // namespace zeroproof
