// Accelerators and simulated threads: who runs hooks, who waits, and which orders race (rules Q3
// to Q6, R4).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/cpu_ops.h"
#include "model/custom_function.h"
#include "model/graph_walk.h"
#include "model/node_order.h"
#include "sim/schedulers/exhaustive.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

constexpr Device kCuda = Device::cuda(0);

Tensor leaf(Shape sizes, double value, Device device) {
  const Tensor tensor = Tensor::full(std::move(sizes), value).on(device);
  tensor.set_requires_grad(true);
  return tensor;
}

// Runs the body in every order that the rules allow; returns how many these are.
template <class Body>
std::size_t explore(const Body& body) {
  constexpr std::size_t kOrdersMax = 20'000;
  ExhaustiveScheduler orders(Pruning::off);
  std::size_t count = 0;
  for (; orders.new_execution(); ++count) {
    EXPECT_LT(count, kOrdersMax);
    body(orders);
    orders.end_execution({});
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(orders.divergence(), std::nullopt);
  return count;
}

// Threads of every kind of hook, by its name.
std::map<std::string, std::int32_t> hook_threads(Autograd& ag, Device device) {
  std::map<std::string, std::int32_t> threads;
  const auto sees = [&](const std::string& name) { threads[name] = ag.current_thread(); };
  const Tensor p = leaf({3}, 1.5, device);
  const Tensor y = mul(ag, p, 2.0);
  y.register_hook([&](const Tensor&) {
    sees("tensor hook");
    ag.queue_callback([&] { sees("callback"); });
    return Tensor();
  });
  y.grad_fn()->register_prehook([&](const TensorList&) {
    sees("prehook");
    return TensorList{};
  });
  y.grad_fn()->register_hook([&](const TensorList&, const TensorList&) {
    sees("posthook");
    return TensorList{};
  });
  p.register_hook([&](const Tensor&) {
    sees("leaf hook");
    return Tensor();
  });
  p.register_post_accumulate_grad_hook([&](const Tensor&) { sees("post-accumulate hook"); });
  ag.backward(sq(ag, y));
  EXPECT_EQ(threads.size(), 6U);
  return threads;
}

std::set<std::int32_t> distinct(const std::map<std::string, std::int32_t>& threads) {
  std::set<std::int32_t> set;
  for (const auto& [name, thread] : threads) set.insert(thread);
  return set;
}

TEST(DeviceThreads, Run_the_hooks_and_callbacks_of_their_nodes) {
  const CpuOps ops;
  Autograd ag(ops);
  const std::set<std::int32_t> main = {ag.current_thread()};
  EXPECT_EQ(distinct(hook_threads(ag, Device::cpu())), main);
  const std::set<std::int32_t> first = distinct(hook_threads(ag, kCuda));
  const std::set<std::int32_t> second = distinct(hook_threads(ag, Device::cuda(1)));
  EXPECT_EQ(first.size(), 1U);
  EXPECT_EQ(second.size(), 1U);
  EXPECT_EQ((std::set{*main.begin(), *first.begin(), *second.begin()}).size(), 3U);
  EXPECT_EQ(distinct(hook_threads(ag, kCuda)), first) << "one thread an accelerator, for ever";
  EXPECT_TRUE(ag.set_multithreading_enabled(false));
  EXPECT_EQ(distinct(hook_threads(ag, kCuda)), main);
}

TEST(DeviceThreads, Serve_all_callers_from_one_queue) {
  explore([](Chooser& chooser) {
    const CpuOps ops;
    Autograd ag(ops);
    ag.set_scheduling(chooser);
    const std::int32_t other = ag.add_thread();
    const Tensor p = leaf({2}, 1.0, kCuda);
    std::set<std::int32_t> threads;
    std::set<GraphTaskId> tasks;
    p.register_post_accumulate_grad_hook([&](const Tensor&) {
      threads.insert(ag.current_thread());
      tasks.insert(ag.current_graph_task());
    });
    const TensorList losses = {sum(ag, p), sum(ag, p)};
    ag.backward_together(
        {{.thread = 0, .roots = {losses[0]}}, {.thread = other, .roots = {losses[1]}}});
    EXPECT_EQ(tasks.size(), 2U);
    EXPECT_EQ(threads.size(), 1U);
    EXPECT_FALSE(threads.contains(0) || threads.contains(other));
  });
}

// A Function whose backward starts another one, `level` deep.
CustomFunction nested(Autograd& ag, int level, std::vector<std::int32_t>& threads) {
  return {.name = "NestedBackward",
          .forward = [&ag](FunctionContext&,
                           const TensorList& in) { return TensorList{mul(ag, in[0], 1.5)}; },
          .backward =
              [&ag, level, &threads](FunctionContext&, const TensorList& grads) {
                threads.push_back(ag.current_thread());
                if (level > 0) {
                  const Tensor x = leaf({1}, 1.0, grads[0].device());
                  Tensor y;
                  {
                    const GradMode enabled(ag, true);
                    y = apply_function(ag, nested(ag, level - 1, threads), {x})[0];
                  }
                  ag.backward(y);
                }
                return grads;
              }};
}

std::vector<std::int32_t> nested_threads(Device device, int level) {
  const CpuOps ops;
  Autograd ag(ops);
  std::vector<std::int32_t> threads;
  ag.backward(apply_function(ag, nested(ag, level, threads), {leaf({1}, 1.0, device)})[0]);
  return threads;
}

// Rule R4; the 61st nested call goes to the pool.
TEST(DeviceThreads, Hand_nested_calls_beyond_the_depth_limit_over) {
  const std::vector<std::int32_t> on_cpu = nested_threads(Device::cpu(), 70);
  EXPECT_EQ(std::count(on_cpu.begin(), on_cpu.end(), 0), 61);
  EXPECT_EQ((std::set(on_cpu.begin(), on_cpu.end()).size()), 2U);
  const std::vector<std::int32_t> on_cuda = nested_threads(kCuda, 70);
  EXPECT_EQ(on_cuda.size(), 71U);
  EXPECT_EQ(std::count(on_cuda.begin(), on_cuda.end(), 0), 0);
  EXPECT_EQ(std::count(on_cuda.begin(), on_cuda.end(), on_cuda[0]), 61);
  EXPECT_EQ((std::set(on_cuda.begin(), on_cuda.end()).size()), 2U);
}

// The program P11: a trunk, two heads, two roots. Notes the order of its leaves and checks that
// the order of its nodes is one that the edges allow.
class TwoHeads final : private AutogradObserver {
 public:
  explicit TwoHeads(Chooser& chooser) { ag_.set_scheduling(chooser); }

  std::string run(Device device) {
    const nn::Linear l0 = layer("l0", 5, 4, device);
    const nn::Linear la = layer("la", 3, 5, device);
    const nn::Linear lb = layer("lb", 3, 5, device);
    const Tensor h = tanh(ag_, l0(ag_, Tensor::full({2, 4}, 0.5).on(device)));
    const Tensor loss_a = sq(ag_, la(ag_, h));
    ag_.backward(TensorList{loss_a, sq(ag_, lb(ag_, h))});
    const auto graph = TaskGraph::make(walk_.snapshot);
    const bool is_legal = graph && is_legal_order(*graph, nodes_);
    EXPECT_TRUE(is_legal) << leaves_;
    return leaves_;
  }

 private:
  nn::Linear layer(const std::string& name, std::int64_t out, std::int64_t in, Device device) {
    nn::Linear made(leaf({out, in}, 0.25, device), leaf({out}, 0.125, device));
    for (const auto& [parameter, tensor] : made.named_parameters())
      tensor.register_post_accumulate_grad_hook(
          [this, word = name + "." + parameter](const Tensor&) { leaves_ += word + " "; });
    return made;
  }

  void on_backward_begin(const BackwardCall& call) override { walk_ = walk_graph(ag_, call); }
  void on_node(const Node& node) override {
    const auto at = walk_.ids.find(&node);
    if (at != walk_.ids.end()) nodes_.push_back(at->second);
  }

  CpuOps ops_;
  Autograd ag_{ops_, this};
  GraphWalk walk_;
  std::vector<NodeId> nodes_;
  std::string leaves_;
};

std::set<std::string> orders_of_two_heads(Device device) {
  std::set<std::string> orders;
  explore([&](Chooser& chooser) { orders.insert(TwoHeads(chooser).run(device)); });
  return orders;
}

// Rule Q6.
TEST(DeviceThreads, Race_with_the_caller_that_feeds_them_several_roots) {
  const std::string trunk = "l0.bias l0.weight ";
  const std::string later_first = "lb.bias lb.weight la.bias la.weight " + trunk;
  EXPECT_EQ(orders_of_two_heads(Device::cpu()), std::set<std::string>{later_first});
  const std::set<std::string> orders = orders_of_two_heads(kCuda);
  EXPECT_TRUE(orders.contains(later_first));
  EXPECT_TRUE(orders.contains("la.bias la.weight lb.bias lb.weight " + trunk));
  EXPECT_TRUE(orders.contains("la.bias lb.bias lb.weight la.weight " + trunk));
}

// Two callers whose losses share a leaf, each with a weight of its own.
void expect_right_sums(Chooser& chooser, Device device) {
  const CpuOps ops;
  Autograd ag(ops);
  ag.set_scheduling(chooser);
  const std::int32_t other = ag.add_thread();
  const Tensor p = leaf({2}, 1.0, device);
  const auto loss = [&](double weight) { return sum(ag, mul(ag, p, weight)); };
  const TensorList first = {loss(3.0)};
  const TensorList second = {loss(5.0)};
  const auto errors =
      ag.backward_together({{.thread = 0, .roots = first}, {.thread = other, .roots = second}});
  for (const auto& error : errors) EXPECT_EQ(error, nullptr);
  EXPECT_EQ(p.grad().values(), (std::vector{8.0, 8.0}));
}

TEST(DeviceThreads, Add_up_the_gradients_of_two_callers_in_every_order) {
  const auto on = [](Device device) {
    return explore([device](Chooser& chooser) { expect_right_sums(chooser, device); });
  };
  EXPECT_EQ(on(Device::cpu()), 20U) << "3 nodes among 3 others";
  EXPECT_GE(on(kCuda), 1U);
}

}  // namespace
}  // namespace zeroproof
