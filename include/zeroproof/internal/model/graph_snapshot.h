#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "zeroproof/model/ids.h"

namespace zeroproof {

// The sequence number of every AccumulateGrad node (rule N2); a trace writes it as -1.
inline constexpr std::uint64_t kAccumulateGradSequence = std::numeric_limits<std::uint64_t>::max();

// An edge leads to one input slot of a node; a root names an output slot.
struct GraphEdge {
  NodeId node;
  std::int32_t slot = 0;
};

struct GraphNode {
  NodeId id;
  std::string name;
  std::uint64_t sequence_nr = kAccumulateGradSequence;
  std::vector<std::optional<GraphEdge>> next;  // nullopt: an invalid edge
  std::string param;                           // leaf name of an AccumulateGrad, else empty
};

// The graph one backward() or grad() call starts on: a `graph` record of hooktrace
// (docs/reference/trace_format.md section 7). Plain data, not validated.
struct GraphSnapshot {
  std::int64_t call = -1;
  std::vector<std::optional<GraphEdge>> roots;
  std::vector<GraphNode> nodes;
  bool accumulate = true;                                    // backward(); false: autograd.grad()
  std::optional<std::vector<std::optional<NodeId>>> inputs;  // inputs= when it was given
  bool is_opaque = false;                                    // not walked completely: never derive
};

}  // namespace zeroproof
