#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "model/node_order.h"
#include "zeroproof/internal/model/ready_queue.h"

namespace zeroproof {
namespace {

struct Task {
  std::uint64_t sequence_nr;
  std::uint32_t node;
  ReadyPriority priority() const { return {0, sequence_nr}; }
};

ReadyQueue<Task> filled_queue(std::int64_t size, std::mt19937_64& numbers) {
  ReadyQueue<Task> queue;
  for (std::int64_t i = 0; i < size; ++i) queue.push({numbers(), 0});
  return queue;
}

// One pop and one push on a queue that holds `size` tasks.
void ready_queue_pop_push(benchmark::State& state) {
  std::mt19937_64 numbers(1);
  auto queue = filled_queue(state.range(0), numbers);
  for (auto _ : state) {
    Task task = queue.pop();
    task.sequence_nr = numbers();
    queue.push(task);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ready_queue_pop_push)->Arg(1)->Arg(16)->Arg(147)->Arg(1024)->Arg(8192)->Arg(65536);

// Leaves that all tie, pushed together and drained: what a wide layer does.
void ready_queue_drain_ties(benchmark::State& state) {
  for (auto _ : state) {
    ReadyQueue<Task> queue;
    for (std::int64_t i = 0; i < state.range(0); ++i) queue.push({kAccumulateGradSequence, 0});
    while (!queue.is_empty()) benchmark::DoNotOptimize(queue.pop());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ready_queue_drain_ties)->Arg(16)->Arg(147)->Arg(1024)->Arg(8192)->Arg(65536);

// Layers of one op node with two leaves each, as a chain of linear layers leaves them.
GraphSnapshot layered_graph(std::int64_t layers) {
  GraphSnapshot graph;
  graph.roots = {GraphEdge{NodeId{0}}};
  for (std::int64_t i = 0; i < layers; ++i) {
    GraphNode op;
    op.id = NodeId{3 * i};
    op.sequence_nr = static_cast<std::uint64_t>(layers - i);
    op.next = {GraphEdge{NodeId{3 * i + 1}}, GraphEdge{NodeId{3 * i + 2}}};
    if (i + 1 < layers) op.next.push_back(GraphEdge{NodeId{3 * i + 3}});
    graph.nodes.push_back(op);
    for (std::int64_t leaf = 1; leaf <= 2; ++leaf) {
      graph.nodes.emplace_back();
      graph.nodes.back().id = NodeId{3 * i + leaf};
    }
  }
  return graph;
}

void derive_node_order_of_layers(benchmark::State& state) {
  const TaskGraph graph = TaskGraph::make(layered_graph(state.range(0))).value();
  for (auto _ : state) benchmark::DoNotOptimize(derive_node_order(graph));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(graph.size()));
}
BENCHMARK(derive_node_order_of_layers)->Arg(16)->Arg(1024)->Arg(65536);

void make_task_graph_of_layers(benchmark::State& state) {
  const GraphSnapshot snapshot = layered_graph(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(TaskGraph::make(snapshot));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(snapshot.nodes.size()));
}
BENCHMARK(make_task_graph_of_layers)->Arg(16)->Arg(1024)->Arg(65536);

}  // namespace
}  // namespace zeroproof
