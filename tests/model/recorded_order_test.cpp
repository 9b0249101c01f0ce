// Node orders that PyTorch 2.11.0 itself took: recorded_orders.jsonl holds every distinct graph
// task of the recorded programs that ended normally, edges reduced to their targets.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model/node_order.h"

namespace zeroproof {
namespace {

using nlohmann::json;

std::optional<NodeId> node_id(const json& id) {
  return id.is_null() ? std::nullopt : std::optional(NodeId{id.get<std::int64_t>()});
}

std::optional<GraphEdge> edge(const json& id) {
  return id.is_null() ? std::nullopt : std::optional(GraphEdge{*node_id(id)});
}

GraphSnapshot snapshot(const json& record) {
  GraphSnapshot graph;
  graph.call = record["call"];
  graph.accumulate = record["accumulate"];
  for (const json& root : record["roots"]) graph.roots.push_back(edge(root));
  if (!record["inputs"].is_null()) {
    graph.inputs.emplace();
    for (const json& input : record["inputs"]) graph.inputs->push_back(node_id(input));
  }
  for (const json& entry : record["nodes"]) {
    GraphNode node;
    node.id = *node_id(entry[0]);
    if (entry[1] >= 0) node.sequence_nr = entry[1];
    for (const json& target : entry[2]) node.next.push_back(edge(target));
    graph.nodes.push_back(node);
  }
  return graph;
}

TEST(RecordedOrder, Is_the_derived_one_in_every_recorded_task) {
  std::ifstream file(ZP_SOURCE_DIR "/tests/model/recorded_orders.jsonl");
  int tasks = 0;
  for (std::string line; std::getline(file, line); ++tasks) {
    const json record = json::parse(line);
    std::vector<NodeId> executed;
    for (const json& id : record["executed"]) executed.push_back(*node_id(id));
    const auto task = TaskGraph::make(snapshot(record));
    ASSERT_TRUE(task) << task.error().text;
    EXPECT_EQ(derive_node_order(*task), executed) << line;
    EXPECT_TRUE(is_legal_order(*task, executed)) << line;
  }
  EXPECT_EQ(tasks, 58);
}

}  // namespace
}  // namespace zeroproof
