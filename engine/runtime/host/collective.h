#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/internal/engine/runtime/process_group.h"

namespace zeroproof::host {

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
};

// What one rank brings to a collective. Where one tensor is both, input and output are equal.
struct Collective {
  CollectiveOp op = CollectiveOp::barrier;
  Span input;
  Span output;
  ReduceOp reduce = ReduceOp::sum;  // of reductions
  int root = 0;                     // of reduce and broadcast
};

std::string_view collective_name(CollectiveOp op);  // "all_reduce"; static
std::string_view group_name(GroupKind kind);        // "expert_data"; static

// What all ranks have to say alike: "all_reduce(avg) of 12 float32".
std::string description(const Collective& collective);
bool is_same_kind(const Collective& a, const Collective& b);

// Does the work of all ranks, in rank order. Everything is read into `scratch` before anything is
// written, so any input may be any output. `garbage` is what others than the root are left with.
void run_collective(const std::vector<const Collective*>& ranks, std::vector<double>& scratch,
                    bool has_garbage);

}  // namespace zeroproof::host
