#include "model/graph_walk.h"

#include <utility>

#include "model/accumulate_grad.h"

namespace zeroproof {
namespace {

class Walker {
 public:
  explicit Walker(GraphWalk& walk) : walk_(walk) {}

  NodeId add(const std::shared_ptr<Node>& node) {
    const NodeId next{static_cast<std::int64_t>(walk_.nodes.size())};
    const auto [at, is_new] = walk_.ids.emplace(node.get(), next);
    if (is_new) {
      walk_.nodes.push_back(node);
      walk_.snapshot.nodes.emplace_back().id = next;
      open_.push_back(next);
    }
    return at->second;
  }

  template <class LeafName>
  void expand(const LeafName& leaf_name) {
    while (!open_.empty()) {
      const auto index = static_cast<std::size_t>(open_.back().value);
      open_.pop_back();
      const Node& node = *walk_.nodes[index];
      std::vector<std::optional<GraphEdge>> next;
      for (const Edge& edge : node.next_edges()) {
        next.emplace_back();
        if (edge.is_valid())
          next.back() = GraphEdge{add(edge.node), static_cast<std::int32_t>(edge.slot)};
      }
      GraphNode& record = walk_.snapshot.nodes[index];
      record.name = node.name();
      record.sequence_nr = node.sequence_nr();
      record.next = std::move(next);
      const auto* leaf = dynamic_cast<const AccumulateGrad*>(&node);
      if (leaf && leaf_name) record.param = leaf_name(leaf->leaf());
    }
  }

 private:
  GraphWalk& walk_;
  std::vector<NodeId> open_;
};

}  // namespace

GraphWalk walk_graph(Autograd& autograd, const BackwardCall& call,
                     const std::function<std::string(const Tensor& leaf)>& leaf_name) {
  GraphWalk walk;
  walk.snapshot.accumulate = call.is_accumulating;
  Walker walker(walk);
  for (const Tensor& root : call.roots) {
    const Edge edge = gradient_edge(autograd, root);
    walk.snapshot.roots.emplace_back();
    if (edge.is_valid())
      walk.snapshot.roots.back() =
          GraphEdge{walker.add(edge.node), static_cast<std::int32_t>(edge.slot)};
  }
  walker.expand(leaf_name);
  if (call.inputs.empty()) return walk;
  walk.snapshot.inputs.emplace();
  for (const Tensor& input : call.inputs) {
    const auto node = input.is_leaf() ? find_accumulate_grad(input) : input.grad_fn();
    const auto at = walk.ids.find(node.get());
    walk.snapshot.inputs->push_back(at == walk.ids.end() ? std::nullopt
                                                         : std::optional(at->second));
  }
  return walk;
}

}  // namespace zeroproof
