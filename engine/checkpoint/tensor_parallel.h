#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/parallel_place.h"
#include "zeroproof/engine/full_tensor.h"
#include "zeroproof/engine/partition_rule.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// One rank's part of a tensor, and the rule by which the parts make it again.
struct TensorPart {
  FullTensor tensor;
  PartitionRule rule;
};

// Cuts a whole tensor for `place`, in the order of docs/spec/zero.md 6.3: experts, replicated if
// the shapes agree, vocabulary, then the recorded partition. `target`: the shape that this rank
// has; none: whatever comes out. The error says what does not fit, without a file.
Result<TensorPart> cut_tensor(FullTensor whole, const PartitionRule& rule,
                              const ParallelPlace& place, const std::optional<Shape>& target);

// The other way: the parts of all tensor-parallel ranks of one expert block, in rank order.
Result<FullTensor> join_tensor_parts(const std::vector<FullTensor>& parts,
                                     const PartitionRule& rule);
// Expert blocks in rank order, along the first dimension.
Result<FullTensor> join_expert_blocks(const std::vector<FullTensor>& blocks);

// Why this rule cannot cut it; empty: it can.
std::string problem_of(const PartitionRule& rule);

}  // namespace zeroproof
