#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "zeroproof/internal/model/graph_snapshot.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {

// The graph that a call is about to run, as a snapshot, and which node has which id in it. Owns
// the nodes.
struct GraphWalk {
  GraphSnapshot snapshot;
  std::map<const Node*, NodeId> ids;
  std::vector<std::shared_ptr<Node>> nodes;  // in order of their ids
};

// Ids count from 0 in the order of a depth-first walk from the roots, as the recorder of
// hooktraces numbers them. `leaf_name` names the leaf of an AccumulateGrad, or is empty.
GraphWalk walk_graph(Autograd& autograd, const BackwardCall& call,
                     const std::function<std::string(const Tensor& leaf)>& leaf_name = {});

}  // namespace zeroproof
