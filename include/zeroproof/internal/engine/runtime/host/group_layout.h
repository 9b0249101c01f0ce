#pragma once

#include <vector>

#include "zeroproof/internal/engine/runtime/process_group.h"

namespace zeroproof {

// How many ranks share one model, one sequence, one set of experts.
struct ParallelDegrees {
  int sequence = 1;
  int tensor = 1;
  int expert = 1;
};

// The groups of one kind, each rank in exactly one. Tensor-parallel ranks are neighbours
// (Megatron); the others of one tensor rank form its data group, over which gradients are reduced.
// Neighbours within a data group share a sequence, or a set of experts (DeepSpeed); expert_data
// takes every expert-th of it. UsageError where degrees do not divide.
std::vector<std::vector<int>> group_layout(GroupKind kind, int world_size,
                                           const ParallelDegrees& degrees);

}  // namespace zeroproof
