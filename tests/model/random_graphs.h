#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/model/pick.h"
#include "zeroproof/internal/model/graph_snapshot.h"

namespace zeroproof::testing {

// Of `count` nodes: every edge leads to a near later one; ids are shuffled, edges may be null or
// doubled, numbers may be equal.
inline GraphSnapshot random_nodes(std::size_t count) {
  const bool has_odd_ids = *rc::gen::arbitrary<bool>();
  const bool has_ties = *rc::gen::arbitrary<bool>();
  const std::size_t shift = pick<std::size_t>(0, count);
  const auto id_of = [&](std::size_t i) {
    const std::size_t odd = 7 * ((i + shift) % count) + 3;
    return NodeId{static_cast<std::int64_t>(has_odd_ids ? odd : i)};
  };
  GraphSnapshot graph;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode node;
    node.id = id_of(i);
    const int edges = pick(i < count / 2 ? 2 : 0, 6);
    for (int e = 0; e < edges; ++e) {
      const std::size_t target = i + pick<std::size_t>(0, 8);
      const bool is_null = target == i || target >= count;
      node.next.push_back(is_null ? std::nullopt : std::optional(GraphEdge{id_of(target)}));
    }
    if (edges != 0) node.sequence_nr = pick<std::uint64_t>(0, has_ties ? 3 : 2 * count);
    graph.nodes.push_back(node);
  }
  return graph;
}

// Roots may be equal or reachable from each other; inputs may be null or unreachable.
inline GraphSnapshot random_graph(std::size_t most_nodes) {
  const auto count = pick<std::size_t>(1, most_nodes + 1);
  GraphSnapshot graph = random_nodes(count);
  const auto any_id = [&] { return graph.nodes[pick<std::size_t>(0, count)].id; };
  const int more_roots = std::max(0, pick(-2, 3));
  graph.roots.push_back(GraphEdge{graph.nodes[0].id});
  for (int i = 0; i < more_roots; ++i) graph.roots.push_back(GraphEdge{any_id()});
  graph.accumulate = *rc::gen::arbitrary<bool>();
  if (pick(0, 2) == 0) return graph;
  graph.inputs.emplace();
  const int inputs = pick(1, 4);
  for (int i = 0; i < inputs; ++i)
    graph.inputs->push_back(pick(0, 8) == 0 ? std::nullopt : std::optional(any_id()));
  return graph;
}

}  // namespace zeroproof::testing
