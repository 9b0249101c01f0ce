// Graphs of a million nodes in a thread with a small stack, and the work of many ready leaves.
#include <gtest/gtest.h>
#include <pthread.h>

#include <bit>
#include <cstddef>
#include <functional>
#include <string>

#include "model/accumulate_grad.h"
#include "model/cpu_ops.h"
#include "tests/model/watched_ops.h"
#include "zeroproof/internal/model/ready_queue.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

constexpr int kChain = 1'000'000;

// A call a node would need some 50 MB for the chain.
void run_on_small_stack(std::function<void()> body) {
  constexpr std::size_t kStackBytes = 256 * 1024;
  pthread_attr_t attributes;
  pthread_t thread;
  const auto entry = [](void* body_to_run) -> void* {
    (*static_cast<std::function<void()>*>(body_to_run))();
    return nullptr;
  };
  ASSERT_EQ(0, pthread_attr_init(&attributes));
  ASSERT_EQ(0, pthread_attr_setstacksize(&attributes, kStackBytes));
  ASSERT_EQ(0, pthread_create(&thread, &attributes, entry, &body));
  ASSERT_EQ(0, pthread_join(thread, nullptr));
  pthread_attr_destroy(&attributes);
}

Tensor chain_leaf(double value) {
  Tensor tensor = Tensor::full({1}, value);
  tensor.set_requires_grad(true);
  return tensor;
}

TEST(Scale, A_chain_of_a_million_nodes_builds_runs_and_is_freed_on_a_small_stack) {
  run_on_small_stack([] {
    const CpuOps ops;
    Autograd ag(ops);
    const Tensor x = chain_leaf(1.0);
    {
      Tensor y = x;
      for (int i = 0; i < kChain; ++i) y = neg(ag, y);
      ag.backward(y);
    }
    EXPECT_EQ(1.0, x.grad().item());
    EXPECT_EQ(nullptr, find_accumulate_grad(x)) << "the whole chain is gone";
  });
}

// Also when what it saved is what keeps the nodes, and inputs= makes the task search paths.
TEST(Scale, A_chain_that_saves_its_tensors_is_searched_and_freed_on_a_small_stack) {
  run_on_small_stack([] {
    const CpuOps ops;
    Autograd ag(ops);
    const Tensor x = chain_leaf(1.0);
    const Tensor one = chain_leaf(1.0);
    {
      Tensor y = x;
      for (int i = 0; i < kChain / 4; ++i) y = mul(ag, y, one);
      EXPECT_EQ(1.0, ag.grad({y}, {x}, {.retain_graph = true})[0].item());
    }
    EXPECT_EQ(nullptr, find_accumulate_grad(x)) << "the whole chain is gone";
  });
}

// Additions that the engine asks for; everything else is the reference.
class CountingOps final : public testing::WatchedOps {
 public:
  mutable std::size_t additions = 0;

 private:
  void on_call(Kind kind) const override { additions += kind == Kind::sum_of_two ? 1 : 0; }
};

class NodeCounter final : public AutogradObserver {
 public:
  std::size_t nodes = 0;

 private:
  void on_node(const Node&) override { ++nodes; }
};

// Twice, so that the second time adds to what is there.
TEST(Scale, A_hundred_thousand_leaves_cost_one_node_and_one_addition_each) {
  for (const std::size_t count : {12'500U, 25'000U, 50'000U, 100'000U}) {
    const CountingOps ops;
    NodeCounter counter;
    Autograd ag(ops, &counter);
    TensorList leaves;
    for (std::size_t i = 0; i < count; ++i) leaves.push_back(chain_leaf(1.0));
    const Tensor loss = sum(ag, cat(ag, leaves));
    ops.additions = 0;
    ag.backward(loss, {.retain_graph = true});
    EXPECT_EQ(0U, ops.additions) << "the first gradient is moved in";
    EXPECT_EQ(count + 2, counter.nodes);
    ag.backward(loss);
    EXPECT_EQ(count, ops.additions);
    EXPECT_EQ(2 * (count + 2), counter.nodes);
    for (const Tensor& each : leaves) ASSERT_EQ(2.0, each.grad().item());
  }
}

struct CountedTask {
  std::size_t* comparisons;
  ReadyPriority priority() const {
    ++*comparisons;
    return {0, kAccumulateGradSequence};
  }
};

// Two priorities a comparison; a push of a tie compares once, a pop twice a level.
TEST(Scale, A_queue_of_ties_compares_twice_a_level) {
  for (const std::size_t count : {12'500U, 25'000U, 50'000U, 100'000U}) {
    std::size_t asked = 0;
    ReadyQueue<CountedTask> queue;
    for (std::size_t i = 0; i < count; ++i) queue.push({&asked});
    EXPECT_EQ(2 * (count - 1), asked);
    asked = 0;
    while (!queue.is_empty()) queue.pop();
    EXPECT_LE(asked, 2 * 2 * count * static_cast<std::size_t>(std::bit_width(count)));
  }
}

}  // namespace
}  // namespace zeroproof
