#include "model/node_creation.h"

#include <string>
#include <utility>

#include "zeroproof/internal/model/grad_thread.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

// In place of the hooks while one of them runs.
void refuse(Node& node) {
  throw AutogradError(
      "Creating a new autograd node from inside a node creation hook is not supported. Node "
      "creation hooks should only observe the node (e.g. record it, stash metadata, or register "
      "backward hooks on it); got a new node of type " +
      std::string(node.name()));
}

void run_from_outermost(const NodeCreationHookFrame& frame, Node& node) {
  if (frame.below) run_from_outermost(*frame.below, node);
  frame.hook(node);
}

}  // namespace

NodeCreationHook::NodeCreationHook(Autograd& autograd, std::function<void(Node& node)> hook)
    : autograd_(autograd), before_(autograd.local().node_creation_hooks) {
  autograd.local().node_creation_hooks = std::make_shared<const NodeCreationHookFrame>(
      NodeCreationHookFrame{std::move(hook), before_});
}

NodeCreationHook::~NodeCreationHook() {
  autograd_.local().node_creation_hooks = before_;
}

void tell_node_creation(Autograd& autograd, Node& node) {
  if (!autograd.local().node_creation_hooks) return;
  static const auto kRefusing =
      std::make_shared<const NodeCreationHookFrame>(NodeCreationHookFrame{refuse, nullptr});
  const std::shared_ptr<const NodeCreationHookFrame> hooks = autograd.local().node_creation_hooks;
  const Holding refusing(autograd.local().node_creation_hooks,
                         std::shared_ptr<const NodeCreationHookFrame>(kRefusing));
  run_from_outermost(*hooks, node);
}

}  // namespace zeroproof
