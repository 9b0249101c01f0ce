#include "zeroproof/internal/model/ready_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "zeroproof/internal/model/graph_snapshot.h"

namespace zeroproof {
namespace {

struct Entry {
  std::string label;
  ReadyPriority key;
  std::shared_ptr<bool> is_alive = std::make_shared<bool>(true);
  ReadyPriority priority() const {
    return *is_alive ? key : ReadyPriority::orphan(key.sequence_nr);
  }
};

struct Leaf {
  int pushed_as;
  ReadyPriority priority() const { return {0, kAccumulateGradSequence}; }
};

template <class Task, class Read>
auto drain(ReadyQueue<Task>& queue, Read read) {
  std::vector<decltype(read(queue.top()))> out;
  while (!queue.is_empty()) out.push_back(read(queue.pop()));
  return out;
}

std::vector<std::string> labels(ReadyQueue<Entry>& queue) {
  return drain(queue, [](const Entry& entry) { return entry.label; });
}

TEST(ReadyQueue, Orders_shutdown_wake_up_orphan_depth_and_sequence) {
  ReadyQueue<Entry> queue;
  queue.push({"depth 0, late", {0, 90}});
  queue.push({"depth 2", {2, 1}});
  queue.push({"orphan", ReadyPriority::orphan(5)});
  queue.push({"depth 0, early", {0, 10}});
  queue.push({"wake-up", ReadyPriority::wake_up()});
  queue.push({"accumulate", {0, kAccumulateGradSequence}});
  queue.push({"deepest", {60, 0}});
  queue.push({"shutdown", ReadyPriority::shutdown()});
  EXPECT_EQ(labels(queue),
            (std::vector<std::string>{"shutdown", "wake-up", "orphan", "deepest", "depth 2",
                                      "accumulate", "depth 0, late", "depth 0, early"}));
}

TEST(ReadyQueue, Lets_a_task_that_became_an_orphan_while_waiting_surface_at_the_next_pops) {
  ReadyQueue<Entry> queue;
  Entry leftover{"leftover", {0, 50}};
  const auto is_alive = leftover.is_alive;
  queue.push({"running", {0, 99}});
  queue.push(std::move(leftover));
  queue.push({"waiting", {0, 60}});
  *is_alive = false;
  EXPECT_EQ(labels(queue), (std::vector<std::string>{"running", "leftover", "waiting"}));
}

// The table of rule Q2; rows 8 to 10 from the trace recorder's own model of the heap.
TEST(ReadyQueue, Breaks_ties_as_the_binary_heap_does) {
  const std::vector<std::vector<int>> table = {
      {},
      {0},
      {0, 1},
      {0, 1, 2},
      {0, 2, 1, 3},
      {0, 2, 4, 1, 3},
      {0, 2, 5, 4, 1, 3},
      {0, 2, 5, 6, 4, 1, 3},
      {0, 2, 6, 5, 7, 4, 1, 3},
      {0, 2, 6, 8, 5, 7, 4, 1, 3},
      {0, 2, 6, 9, 8, 5, 7, 4, 1, 3},
  };
  for (std::size_t leaves = 0; leaves < table.size(); ++leaves) {
    ReadyQueue<Leaf> queue;
    for (std::size_t i = 0; i < leaves; ++i) queue.push({static_cast<int>(i)});
    EXPECT_EQ(drain(queue, [](const Leaf& leaf) { return leaf.pushed_as; }), table[leaves]);
  }
}

RC_GTEST_PROP(ReadyQueue, Pops_by_falling_priority_whatever_was_pushed_when, ()) {
  const auto sequences =
      *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 8));
  ReadyQueue<Entry> queue;
  for (const std::uint64_t sequence : sequences) queue.push({"", {0, sequence}});
  RC_ASSERT(queue.size() == sequences.size());
  const auto popped = drain(queue, [](const Entry& entry) { return entry.key.sequence_nr; });
  auto falling = sequences;
  std::sort(falling.rbegin(), falling.rend());
  RC_ASSERT(popped == falling);
}

}  // namespace
}  // namespace zeroproof
