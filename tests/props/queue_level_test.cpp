#include "props/replay/queue_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "model/node_order.h"
#include "tests/model/random_graphs.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;
using testing::pick;
using testing::random_graph;
using Nodes = std::vector<std::int64_t>;

// A task's number and its call's number differ, as in a process that ran other tasks before.
GraphTaskId task_of(std::int64_t call) {
  return GraphTaskId{call + 100};
}

HookEvent event(EventKind kind, std::int64_t call) {
  HookEvent out;
  out.kind = kind;
  out.call = call;
  out.graph_task = task_of(call);
  return out;
}

HookEvent node_exec(std::int64_t call, std::int64_t node) {
  HookEvent out = event(EventKind::node_exec, call);
  out.node = node;
  return out;
}

HookEvent failed_end(std::int64_t call) {
  HookEvent out = event(EventKind::gt_end, call);
  out.exception = NameId{0};
  return out;
}

GraphNode node(std::int64_t id, std::uint64_t sequence_nr, const Nodes& next) {
  GraphNode out;
  out.id = NodeId{id};
  out.name = sequence_nr == kAccumulateGradSequence ? "AccumulateGrad" : "AddmmBackward0";
  if (next.empty()) out.param = "w" + std::to_string(id);
  out.sequence_nr = sequence_nr;
  for (const std::int64_t target : next) out.next.push_back(GraphEdge{NodeId{target}});
  return out;
}

// 0 feeds 1 and 2, each of which feeds one leaf: runs 0 2 4 1 3.
GraphSnapshot two_branches(std::int64_t call) {
  constexpr std::uint64_t kLeaf = kAccumulateGradSequence;
  GraphSnapshot graph;
  graph.call = call;
  graph.roots = {GraphEdge{NodeId{0}}};
  graph.nodes = {node(0, 9, {1, 2}), node(1, 1, {3}), node(2, 2, {4}), node(3, kLeaf, {}),
                 node(4, kLeaf, {})};
  return graph;
}

GraphSnapshot two_roots(std::int64_t call) {
  GraphSnapshot graph = two_branches(call);
  graph.roots = {GraphEdge{NodeId{1}}, GraphEdge{NodeId{2}}};
  return graph;
}

void run_nodes(QueueLevel& level, std::int64_t call, const Nodes& nodes) {
  for (const std::int64_t id : nodes) level.on_event(node_exec(call, id));
}

QueueReport replay(const GraphSnapshot& graph, const Nodes& nodes, const HookEvent& end,
                   TraceDevice device = TraceDevice::cpu) {
  QueueLevel level(device);
  level.on_graph(graph);
  level.on_event(event(EventKind::gt_begin, graph.call));
  run_nodes(level, graph.call, nodes);
  level.on_event(end);
  return level.finish();
}

QueueReport replay(const GraphSnapshot& graph, const Nodes& nodes,
                   TraceDevice device = TraceDevice::cpu) {
  return replay(graph, nodes, event(EventKind::gt_end, graph.call), device);
}

TEST(QueueLevel, Matches_the_order_of_the_rules) {
  const QueueReport report = replay(two_branches(0), {0, 2, 4, 1, 3});
  EXPECT_TRUE(report.holds());
  EXPECT_EQ(report.graph_tasks, 1);
  EXPECT_EQ(report.matched, 1);
  EXPECT_EQ(report.nodes, 5);
}

TEST(QueueLevel, Names_the_first_difference) {
  const QueueReport report = replay(two_branches(6), {0, 1, 3, 2, 4});
  EXPECT_FALSE(report.holds());
  EXPECT_EQ(report.mismatched, 1);
  ASSERT_TRUE(report.first_mismatch);
  EXPECT_EQ(report.first_mismatch->call, 6);
  EXPECT_EQ(report.first_mismatch->text,
            "graph task of call 6, position 1: derived node 2 (AddmmBackward0), recorded node 1 "
            "(AddmmBackward0); 5 nodes derived, 5 recorded");
  EXPECT_THAT(replay(two_branches(6), {0, 2, 4, 1}).first_mismatch->text,
              HasSubstr("position 4: derived node 3 (AccumulateGrad of w3), recorded the end"));
  EXPECT_THAT(replay(two_branches(6), {0, 2, 4, 1, 3, 7}).first_mismatch->text,
              HasSubstr("position 5: derived the end of the task, recorded node 7, not in"));
}

TEST(QueueLevel, Keeps_the_text_of_the_first_mismatch_only) {
  QueueLevel level(TraceDevice::cpu);
  for (const std::int64_t call : {5, 6}) {
    level.on_graph(two_branches(call));
    level.on_event(event(EventKind::gt_begin, call));
    level.on_event(event(EventKind::gt_end, call));
  }
  const QueueReport report = level.finish();
  EXPECT_EQ(report.mismatched, 2);
  EXPECT_EQ(report.first_mismatch->call, 5);
}

TEST(QueueLevel, Compares_what_ran_of_a_failed_task) {
  EXPECT_EQ(replay(two_branches(0), {0, 2}, failed_end(0)).matched, 1);
  EXPECT_EQ(replay(two_branches(0), {}, failed_end(0)).matched, 1);
  EXPECT_EQ(replay(two_branches(0), {0, 1}, failed_end(0)).mismatched, 1);
  EXPECT_EQ(replay(two_branches(0), {0, 2, 4, 1, 3, 3}, failed_end(0)).mismatched, 1);
}

TEST(QueueLevel, Counts_a_task_without_an_end_as_unfinished) {
  const HookEvent nothing = event(EventKind::mark, 0);
  const QueueReport report = replay(two_branches(0), {0, 2}, nothing);
  EXPECT_EQ(report.unfinished, 1);
  EXPECT_EQ(report.matched, 0);
  EXPECT_TRUE(report.holds());
  EXPECT_EQ(replay(two_branches(0), {0, 1}, nothing).mismatched, 1);
}

TEST(QueueLevel, Keeps_nested_tasks_apart_and_skips_nodes_another_task_ran) {
  QueueLevel level(TraceDevice::cpu);
  level.on_graph(two_branches(0));
  level.on_event(event(EventKind::gt_begin, 0));
  run_nodes(level, 0, {0, 2});
  level.on_graph(two_branches(1));
  level.on_event(event(EventKind::gt_begin, 1));
  run_nodes(level, 1, {0, 2, 4});
  HookEvent foreign = node_exec(0, 4);  // a node that call 0 watches, run by the task of call 1
  foreign.graph_task = task_of(1);
  level.on_event(foreign);
  run_nodes(level, 1, {1, 3});
  level.on_event(event(EventKind::gt_end, 1));
  run_nodes(level, 0, {4, 1, 3});
  level.on_event(event(EventKind::gt_end, 0));
  const QueueReport report = level.finish();
  EXPECT_EQ(report.graph_tasks, 2);
  EXPECT_EQ(report.matched, 2);
}

TEST(QueueLevel, Skips_opaque_graphs_and_counts_tasks_without_one) {
  GraphSnapshot opaque = two_branches(0);
  opaque.is_opaque = true;
  opaque.roots = {std::nullopt};
  const QueueReport report = replay(opaque, {3, 3});
  EXPECT_EQ(report.opaque, 1);
  EXPECT_EQ(report.graph_tasks, 0);
  EXPECT_TRUE(report.holds());

  QueueLevel level(TraceDevice::cpu);
  level.on_event(event(EventKind::gt_begin, 0));
  level.on_event(event(EventKind::gt_end, 0));
  EXPECT_EQ(level.finish().without_graph, 1);
}

TEST(QueueLevel, Accepts_another_legal_order_of_several_roots_on_cuda_only) {
  EXPECT_EQ(replay(two_roots(0), {2, 4, 1, 3}, TraceDevice::cuda).matched, 1);
  const Nodes other = {1, 2, 4, 3};
  const QueueReport race = replay(two_roots(0), other, TraceDevice::cuda);
  EXPECT_EQ(race.races, 1);
  EXPECT_EQ(race.matched, 0);
  EXPECT_TRUE(race.holds());
  EXPECT_EQ(replay(two_roots(0), other, TraceDevice::cpu).mismatched, 1);
  EXPECT_EQ(replay(two_branches(0), {0, 1, 3, 2, 4}, TraceDevice::cuda).mismatched, 1);
  EXPECT_THAT(replay(two_roots(0), {1, 4, 2, 3}, TraceDevice::cuda).first_mismatch->text,
              HasSubstr("no order of the race allows position 1: node 4 (AccumulateGrad of w4)"));
  EXPECT_EQ(replay(two_roots(0), {1, 3, 2}, TraceDevice::cuda).mismatched, 1);
  EXPECT_EQ(replay(two_roots(0), {1, 3, 2}, failed_end(0), TraceDevice::cuda).races, 1);
}

TEST(QueueLevel, Reports_a_damaged_graph_as_a_mismatch) {
  GraphSnapshot damaged = two_branches(3);
  damaged.nodes[1].next = {GraphEdge{NodeId{0}}};
  EXPECT_THAT(replay(damaged, {0}).first_mismatch->text, HasSubstr("cycle"));

  QueueLevel level(TraceDevice::cpu);
  level.on_graph(two_branches(3));
  level.on_graph(two_branches(3));
  const QueueReport report = level.finish();
  EXPECT_EQ(report.mismatched, 1);
  EXPECT_THAT(report.first_mismatch->text, HasSubstr("call 3, a second graph record"));
}

RC_GTEST_PROP(QueueLevel, Finds_every_exchange_of_two_nodes, ()) {
  GraphSnapshot graph = random_graph(14);
  graph.call = 0;
  Nodes nodes;
  const std::vector<NodeId> order = derive_node_order(graph).value();
  for (const NodeId id : order) nodes.push_back(id.value);
  RC_ASSERT(replay(graph, nodes).matched == 1);
  if (nodes.empty()) return;
  const auto a = pick<std::size_t>(0, nodes.size());
  const auto b = pick<std::size_t>(0, nodes.size());
  std::swap(nodes[a], nodes[b]);
  RC_ASSERT(replay(graph, nodes).mismatched == (a == b ? 0 : 1));
}

}  // namespace
}  // namespace zeroproof
