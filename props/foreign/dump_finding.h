#pragma once

#include <cstdint>
#include <vector>

#include "props/replay/diagnosis.h"

namespace zeroproof {

// A diagnosis of dumps with what it needs to be put in relation to others.
struct DumpFinding {
  Diagnosis diagnosis;
  std::vector<std::int32_t> accused;  // ranks that others wait for; ascending
  std::vector<std::int32_t> waiting;  // ranks that cannot go on; ascending
};

// Causes before their consequences. A finding whose accused ranks all wait in another finding is a
// consequence of that one: it becomes a hazard `collective.held_up`, which says where they wait.
// Ranks that wait for each other in a circle are causes.
std::vector<Diagnosis> causes_first(std::vector<DumpFinding> findings);

}  // namespace zeroproof
