// The engine loop on graphs of every shape: order, numbers, life time.
#include "zeroproof/model/autograd.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "model/accumulate_grad.h"
#include "model/cpu_ops.h"
#include "model/graph_walk.h"
#include "model/node_order.h"
#include "tests/model/pick.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using testing::pick;

Tensor value_leaf(double value) {
  Tensor tensor = Tensor::full({2}, value);
  tensor.set_requires_grad(true);
  return tensor;
}

// Walks the graph before each task and writes down what ran.
class OrderObserver final : public AutogradObserver {
 public:
  Autograd* autograd = nullptr;
  GraphWalk walk;
  std::vector<NodeId> order;

 private:
  void on_backward_begin(const BackwardCall& call) override {
    order.clear();
    walk = walk_graph(*autograd, call);
  }
  void on_node(const Node& node) override {
    const auto at = walk.ids.find(&node);
    if (at != walk.ids.end()) order.push_back(at->second);
  }
};

// Leaves (some frozen), sums and products of earlier tensors, a few of them detached.
struct RandomProgram {
  TensorList leaves;
  TensorList tensors;

  RandomProgram(Autograd& ag, int count) {
    const int leaf_count = pick(1, 9);
    for (int i = 0; i < leaf_count; ++i) {
      leaves.push_back(Tensor::full({2}, 1.0 + i));
      leaves.back().set_requires_grad(i == 0 || pick(0, 4) != 0);
    }
    tensors = leaves;
    for (int i = 0; i < count; ++i) tensors.push_back(random_op(ag));
  }

  Tensor any() const { return tensors[pick<std::size_t>(0, tensors.size())]; }

  Tensor random_op(Autograd& ag) const {
    const Tensor a = any();
    const Tensor b = any();
    switch (pick(0, 6)) {
      case 0:
        return cat(ag, {a, b, any(), any()}).sizes().empty() ? a : add(ag, a, b);
      case 1:
        return a.detach();
      case 2:
        return tanh(ag, a);
      case 3:
        return unbind(ag, stack(ag, {a, b, leaves[0]}, 0), 0)[pick<std::size_t>(0, 3)];
      default:
        return add(ag, tanh(ag, a), b);
    }
  }
};

TensorList roots_of(Autograd& ag, const RandomProgram& program) {
  TensorList roots;
  const int count = pick(1, 4);
  for (int i = 0; i < count; ++i) roots.push_back(sum(ag, program.any()));
  roots.push_back(sum(ag, cat(ag, program.leaves)));
  std::erase_if(roots, [](const Tensor& root) { return !root.requires_grad(); });
  return roots;
}

RC_GTEST_PROP(AutogradOrder, Is_the_one_that_the_queue_rules_derive, ()) {
  const CpuOps ops;
  OrderObserver observer;
  Autograd ag(ops, &observer);
  observer.autograd = &ag;
  const RandomProgram program(ag, pick(1, 60));
  const TensorList roots = roots_of(ag, program);
  BackwardOptions options{.retain_graph = true};
  for (int i = pick(0, 3); i > 0; --i) {
    const Tensor input = program.any();
    if (input.requires_grad()) options.inputs.push_back(input);
  }
  if (!options.inputs.empty() && pick(0, 2) == 0) {
    ag.grad(roots, options.inputs, options);
  } else {
    ag.backward(roots, {}, options);
  }
  const auto derived = derive_node_order(observer.walk.snapshot);
  RC_ASSERT(derived.has_value());
  RC_ASSERT(observer.order == *derived);
}

RC_GTEST_PROP(AutogradOrder, Does_not_depend_on_what_ran_before, ()) {
  const CpuOps ops;
  OrderObserver observer;
  Autograd ag(ops, &observer);
  observer.autograd = &ag;
  const RandomProgram program(ag, pick(1, 40));
  const TensorList roots = roots_of(ag, program);
  ag.backward(roots, {}, {.retain_graph = true});
  const std::vector<NodeId> first = observer.order;
  const Tensor once = program.leaves[0].grad();
  const std::vector<double> values = once.is_defined() ? once.values() : std::vector<double>{};
  ag.backward(roots, {}, {.retain_graph = true});
  RC_ASSERT(observer.order == first);
  for (std::size_t i = 0; i < values.size(); ++i)
    RC_ASSERT(program.leaves[0].grad().values()[i] == 2 * values[i]);
}

TEST(Autograd, Builds_runs_and_frees_a_chain_of_a_million_nodes_without_recursion) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor x = value_leaf(1.0);
  {
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) y = neg(ag, y);
    ag.backward(sum(ag, y));
  }
  EXPECT_EQ((std::vector<double>{1.0, 1.0}), x.grad().values());
  EXPECT_EQ(nullptr, find_accumulate_grad(x));
}

TEST(Autograd, Accumulates_a_hundred_thousand_leaves_that_are_ready_together) {
  const CpuOps ops;
  Autograd ag(ops);
  TensorList leaves;
  std::size_t hooks = 0;
  for (int i = 0; i < 100'000; ++i) {
    leaves.push_back(value_leaf(i));
    leaves.back().register_post_accumulate_grad_hook([&](const Tensor&) { ++hooks; });
  }
  ag.backward(sum(ag, cat(ag, leaves)));
  EXPECT_EQ(leaves.size(), hooks);
  for (const Tensor& each : leaves) ASSERT_EQ((std::vector<double>{1, 1}), each.grad().values());
}

// Tensors that nodes save own nodes too, and an edge may be there twice.
TEST(Autograd, Frees_a_deep_graph_of_saved_tensors_and_doubled_edges_that_never_ran) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor x = value_leaf(0.5);
  {
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i) y = mul(ag, tanh(ag, add(ag, y, y)), y);
  }
  EXPECT_EQ(nullptr, find_accumulate_grad(x));
}

TEST(Autograd, Hands_the_61st_nested_backward_to_a_pool_thread) {
  const CpuOps ops;
  Autograd ag(ops);
  std::vector<std::int32_t> threads;
  const std::function<void(int)> nest = [&](int levels) {
    threads.push_back(ag.current_thread());
    if (levels == 0) return;
    const GradMode enabled(ag, true);
    const Tensor y = mul(ag, value_leaf(1.0), 2.0);
    y.register_hook([&, levels](const Tensor&) {
      nest(levels - 1);
      return Tensor();
    });
    ag.backward(sum(ag, y));
  };
  nest(71);
  EXPECT_EQ(62, std::count(threads.begin(), threads.end(), 0));
  EXPECT_EQ(10, std::count(threads.begin(), threads.end(), 1));
}

TEST(Autograd, Drops_what_a_failed_task_left_in_the_queue) {
  const CpuOps ops;
  Autograd ag(ops);
  TensorList leaves;
  for (int i = 0; i < 6; ++i) leaves.push_back(value_leaf(i));
  int runs = 0;
  bool is_bad = true;
  for (const Tensor& each : leaves) {
    each.register_post_accumulate_grad_hook([&](const Tensor&) {
      if (++runs == 3 && is_bad) throw AutogradError("injected");
    });
  }
  const Tensor loss = sum(ag, cat(ag, leaves));
  EXPECT_THROW(ag.backward(loss), AutogradError);
  EXPECT_EQ(3, runs);
  is_bad = false;
  ag.backward(loss);
  EXPECT_EQ(9, runs);
  EXPECT_EQ(GraphTaskId::none(), ag.current_graph_task());
}

TEST(Autograd, Refuses_misuse) {
  const CpuOps ops;
  Autograd ag(ops);
  const Tensor x = value_leaf(1.0);
  EXPECT_THROW(ag.backward(mul(ag, x, 2.0)), AutogradError) << "two elements";
  EXPECT_THROW(ag.backward(Tensor::full({}, 1.0)), AutogradError) << "needs no gradient";
  EXPECT_THROW(ag.queue_callback([] {}), AutogradError) << "no task";
  EXPECT_THROW(ag.grad({sum(ag, x)}, {}), AutogradError) << "no inputs";
  EXPECT_THROW(mul(ag, x, 2.0).set_requires_grad(false), AutogradError) << "no leaf";
}

}  // namespace
}  // namespace zeroproof
