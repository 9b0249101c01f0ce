#pragma once

#include <functional>
#include <memory>

#include "zeroproof/internal/model/local_state.h"
#include "zeroproof/internal/model/node.h"

namespace zeroproof {

// torch.autograd.graph.node_creation_hook for a while: `hook` sees every node that the current
// thread makes, once its edges and saved tensors are there. Graph tasks carry it along. An
// AccumulateGrad counts when it is made, not when it is used again. A hook must not make nodes:
// AutogradError.
class NodeCreationHook {
 public:
  NodeCreationHook(Autograd& autograd, std::function<void(Node& node)> hook);
  ~NodeCreationHook();
  NodeCreationHook(const NodeCreationHook&) = delete;
  NodeCreationHook& operator=(const NodeCreationHook&) = delete;

 private:
  Autograd& autograd_;
  std::shared_ptr<const NodeCreationHookFrame> before_;
};

// Runs the hooks of the current thread on a node that is complete. For the files that make nodes.
void tell_node_creation(Autograd& autograd, Node& node);

}  // namespace zeroproof
