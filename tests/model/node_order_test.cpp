#include "model/node_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/model/random_graphs.h"

namespace zeroproof {
namespace {

using testing::pick;
using testing::random_graph;

std::vector<std::int64_t> values(const std::vector<NodeId>& ids) {
  std::vector<std::int64_t> out;
  for (const NodeId id : ids) out.push_back(id.value);
  return out;
}

// The rules once more, written for clarity and not for speed, on the snapshot itself.
class SlowReference {
 public:
  explicit SlowReference(const GraphSnapshot& graph) : graph_(graph) {
    for (const GraphNode& node : graph.nodes) nodes_[node.id] = &node;
    for (const GraphNode& node : graph.nodes)
      for (const auto& edge : node.next)
        if (edge && is_reached(node.id)) ++missing_[edge->node];
    if (graph.roots.size() > 1)
      for (const auto& root : graph.roots) ++missing_[root->node];
  }

  bool leads_to(NodeId from, NodeId to) const {
    if (from == to) return true;
    for (const auto& edge : nodes_.at(from)->next)
      if (edge && leads_to(edge->node, to)) return true;
    return false;
  }

  bool is_reached(NodeId id) const {
    for (const auto& root : graph_.roots)
      if (leads_to(root->node, id)) return true;
    return false;
  }

  bool is_input(NodeId id) const {
    for (const auto& input : *graph_.inputs)
      if (input == id) return true;
    return false;
  }

  // On a path to an input; autograd.grad does not run the input itself.
  bool is_executed(NodeId id) const {
    if (!graph_.inputs) return true;
    for (const auto& input : *graph_.inputs)
      if (input && leads_to(id, *input) && (graph_.accumulate || id != *input)) return true;
    return false;
  }

  bool is_queued(NodeId id) const { return is_executed(id) || is_input(id); }

  std::vector<std::int64_t> order() {
    std::vector<std::int64_t> out;
    if (graph_.roots.size() == 1)
      push(graph_.roots[0]->node);
    else
      for (const auto& root : graph_.roots) arrive(root->node);
    while (heap_.size() > 1) {
      const NodeId id = pop();
      if (!is_executed(id)) continue;
      out.push_back(id.value);
      for (const auto& edge : nodes_.at(id)->next)
        if (edge) arrive(edge->node);
    }
    return out;
  }

 private:
  void arrive(NodeId id) {
    if (--missing_[id] == 0 && is_queued(id)) push(id);
  }

  std::uint64_t key(std::size_t place) const { return nodes_.at(heap_[place])->sequence_nr; }

  // A binary heap in heap_[1], heap_[2], ...; parents of k sit at k / 2.
  void swim(std::size_t place) {
    for (; place > 1 && key(place / 2) < key(place); place /= 2)
      std::swap(heap_[place], heap_[place / 2]);
  }

  void push(NodeId id) {
    heap_.push_back(id);
    swim(heap_.size() - 1);
  }

  // The hole sinks to the bottom, to the right when equal; then the last entry swims up from it.
  NodeId pop() {
    const NodeId top = heap_[1];
    const NodeId last = heap_.back();
    heap_.pop_back();
    if (heap_.size() == 1) return top;
    std::size_t hole = 1;
    while (2 * hole < heap_.size()) {
      std::size_t child = 2 * hole + 1;
      if (child == heap_.size() || key(child) < key(child - 1)) --child;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = last;
    swim(hole);
    return top;
  }

  const GraphSnapshot& graph_;
  std::map<NodeId, const GraphNode*> nodes_;
  std::map<NodeId, int> missing_;
  std::vector<NodeId> heap_{NodeId{-1}};
};

GraphNode node(std::int64_t id, std::uint64_t sequence_nr, const std::vector<std::int64_t>& next) {
  GraphNode out;
  out.id = NodeId{id};
  out.sequence_nr = sequence_nr;
  for (const std::int64_t target : next) out.next.push_back(GraphEdge{NodeId{target}});
  return out;
}

GraphSnapshot graph_of(std::vector<GraphNode> nodes) {
  GraphSnapshot graph;
  graph.call = 4;
  graph.roots = {GraphEdge{NodeId{0}}};
  graph.nodes = std::move(nodes);
  return graph;
}

std::string error_of(const GraphSnapshot& graph) {
  const auto order = derive_node_order(graph);
  return order ? "no error" : order.error().text;
}

RC_GTEST_PROP(NodeOrder, Equals_the_slow_reference, ()) {
  const GraphSnapshot graph = random_graph(14);
  RC_ASSERT(values(derive_node_order(graph).value()) == SlowReference(graph).order());
}

RC_GTEST_PROP(NodeOrder, Equals_the_slow_reference_when_many_leaves_tie, ()) {
  GraphSnapshot graph = graph_of({node(0, 1, {})});
  const auto leaves = pick<std::int64_t>(1, 40);
  for (std::int64_t i = 1; i <= leaves; ++i) {
    graph.nodes[0].next.push_back(GraphEdge{NodeId{i}});
    graph.nodes.push_back(
        node(i, *rc::gen::element<std::uint64_t>(0, kAccumulateGradSequence), {}));
  }
  RC_ASSERT(values(derive_node_order(graph).value()) == SlowReference(graph).order());
}

RC_GTEST_PROP(NodeOrder, Runs_exactly_the_nodes_on_paths_to_the_inputs, ()) {
  const GraphSnapshot graph = random_graph(14);
  const auto order = derive_node_order(graph).value();
  const SlowReference reference(graph);
  std::set<NodeId> expected;
  for (const GraphNode& candidate : graph.nodes)
    if (reference.is_reached(candidate.id) && reference.is_executed(candidate.id))
      expected.insert(candidate.id);
  RC_ASSERT(std::set<NodeId>(order.begin(), order.end()) == expected);
  RC_ASSERT(order.size() == expected.size());
}

RC_GTEST_PROP(NodeOrder, Is_legal_and_no_shuffle_that_breaks_an_edge_is, ()) {
  const GraphSnapshot graph = random_graph(14);
  const TaskGraph task = TaskGraph::make(graph).value();
  auto order = derive_node_order(task);
  RC_ASSERT(is_legal_order(task, order));
  if (order.empty()) return;
  const auto a = pick<std::size_t>(0, order.size());
  const auto b = pick<std::size_t>(0, order.size());
  std::swap(order[a], order[b]);
  const SlowReference reference(graph);
  bool is_broken = false;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = i + 1; j < order.size(); ++j)
      is_broken = is_broken || reference.leads_to(order[j], order[i]);
  RC_ASSERT(is_legal_order(task, order) == !is_broken);
}

RC_GTEST_PROP(NodeOrder, Allows_a_prefix_only_where_a_prefix_is_allowed, ()) {
  const TaskGraph task = TaskGraph::make(random_graph(14)).value();
  const auto order = derive_node_order(task);
  const std::span<const NodeId> prefix(order.data(), pick<std::size_t>(0, order.size() + 1));
  RC_ASSERT(!find_illegal_position(task, prefix, OrderExtent::prefix));
  const bool is_whole = prefix.size() == order.size();
  const auto illegal = find_illegal_position(task, prefix, OrderExtent::whole);
  RC_ASSERT(illegal == (is_whole ? std::nullopt : std::optional(prefix.size())));
}

// grad(inputs=[1, 5]): node 1 does not run, but waits in the heap, so 3 comes before 2 (rule Q2).
TEST(NodeOrder, Lets_a_captured_node_influence_ties) {
  GraphSnapshot graph = graph_of({node(0, 9, {1, 2, 3, 4}), node(1, 5, {}), node(2, 5, {5}),
                                  node(3, 5, {5}), node(4, 5, {5}), node(5, 1, {})});
  graph.accumulate = false;
  graph.inputs = {NodeId{1}, NodeId{5}};
  EXPECT_EQ(values(derive_node_order(graph).value()), (std::vector<std::int64_t>{0, 3, 2, 4}));
}

TEST(NodeOrder, Rejects_an_order_that_repeats_or_invents_a_node) {
  const TaskGraph task = TaskGraph::make(graph_of({node(0, 2, {1}), node(1, 1, {})})).value();
  const std::vector<NodeId> repeats = {NodeId{0}, NodeId{0}, NodeId{1}};
  const std::vector<NodeId> invents = {NodeId{0}, NodeId{1}, NodeId{2}};
  EXPECT_EQ(find_illegal_position(task, repeats, OrderExtent::prefix), 1U);
  EXPECT_EQ(find_illegal_position(task, invents, OrderExtent::prefix), 2U);
}

TEST(NodeOrder, Takes_a_million_nodes_in_a_chain_and_in_a_fan) {
  constexpr std::int64_t kNodes = 1'000'000;
  GraphSnapshot graph = graph_of({});
  for (std::int64_t i = 0; i < kNodes; ++i)
    graph.nodes.push_back(node(i, static_cast<std::uint64_t>(kNodes - i), {}));
  for (std::size_t i = 0; i + 1 < graph.nodes.size(); ++i)
    graph.nodes[i].next = {GraphEdge{graph.nodes[i + 1].id}};
  graph.inputs = {NodeId{kNodes - 1}};
  const auto chain = derive_node_order(graph).value();
  ASSERT_EQ(chain.size(), graph.nodes.size());
  EXPECT_EQ(chain.back().value, kNodes - 1);

  for (GraphNode& each : graph.nodes) each.next.clear();
  for (std::int64_t i = 1; i < kNodes; ++i) graph.nodes[0].next.push_back(GraphEdge{NodeId{i}});
  graph.inputs.reset();
  EXPECT_EQ(derive_node_order(graph).value().size(), graph.nodes.size());
}

TEST(NodeOrder, Names_what_is_damaged) {
  const auto good = graph_of({node(0, 2, {1}), node(1, 1, {})});
  EXPECT_EQ(error_of(good), "no error");

  EXPECT_EQ(error_of(graph_of({node(0, 2, {8})})),
            "graph of call 4: node 0 has an edge to node 8, which it lacks; the record is damaged, "
            "record the trace again");
  EXPECT_NE(error_of(graph_of({node(0, 2, {}), node(0, 1, {})})).find("two nodes have the id 0"),
            std::string::npos);
  EXPECT_NE(error_of(graph_of({node(0, 3, {1}), node(1, 2, {2}), node(2, 1, {1})}))
                .find("2 of its 3 reachable nodes lie on or after a cycle"),
            std::string::npos);
  EXPECT_NE(error_of(graph_of({node(0, 3, {0})})).find("cycle"), std::string::npos);
  auto broken = good;
  broken.roots = {std::nullopt};
  EXPECT_NE(error_of(broken).find("root 0 is null"), std::string::npos);
  broken.roots = {GraphEdge{NodeId{0}}, GraphEdge{NodeId{5}}};
  EXPECT_NE(error_of(broken).find("root 1 is node 5"), std::string::npos);
  broken.roots.clear();
  EXPECT_NE(error_of(broken).find("it has no root"), std::string::npos);
  broken = good;
  broken.inputs = {NodeId{9}};
  EXPECT_NE(error_of(broken).find("input node 9 is unknown"), std::string::npos);
  broken.inputs->clear();
  EXPECT_NE(error_of(broken).find("list of inputs is empty"), std::string::npos);
}

}  // namespace
}  // namespace zeroproof
