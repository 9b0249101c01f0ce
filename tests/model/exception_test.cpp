// Exceptions at every node of a program, from every place that can throw, plain and nested, on the
// CPU and on an accelerator (rules F1, F2, C5, C6, R5): enumerated.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/accumulate_grad.h"
#include "model/cpu_ops.h"
#include "model/custom_function.h"
#include "tests/model/random_program.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using testing::Numbers;
using testing::numbers_of;
using Names = std::vector<std::string>;

enum class ThrowPlace {
  tensor_hook,
  prehook,
  apply,
  wrong_shape,
  wrong_count,
  posthook,
  post_accumulate
};
constexpr ThrowPlace kPlaces[] = {ThrowPlace::tensor_hook,    ThrowPlace::prehook,
                                  ThrowPlace::apply,          ThrowPlace::wrong_shape,
                                  ThrowPlace::wrong_count,    ThrowPlace::posthook,
                                  ThrowPlace::post_accumulate};
enum class Nesting { none, uncaught, caught };

struct Setup {
  Nesting nesting = Nesting::none;
  bool is_on_device = false;
  bool keeps_graph = false;
  bool is_grad_call = false;
};

struct Fault {
  ThrowPlace place = ThrowPlace::tensor_hook;
  std::string node;
};

struct Injected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What one backward showed.
struct SeenGradients {
  Names reached;   // as their first tensor hook saw it
  Names executed;  // as the observer saw it
  std::vector<Numbers> grads;
  int callbacks = 0;
  Numbers outer_grad;
  int outer_callbacks = 0;
  friend bool operator==(const SeenGradients&, const SeenGradients&) = default;
};

constexpr std::size_t kFunctions = 5;
constexpr std::size_t kLeaves = 5;

std::string function_name(std::size_t i) {
  return "function" + std::to_string(i);
}
std::string leaf_name(std::size_t i) {
  return "leaf" + std::to_string(i);
}
bool is_leaf_name(const std::string& name) {
  return name.starts_with("leaf");
}

// n0 = p0 p1, n1 = n0 p2, n2 = n0 p3, n3 = n1 n2, n4 = n3 p4; every product a custom Function
// that saves both factors.
class World final : public AutogradObserver {
 public:
  explicit World(const Setup& setup) : setup_(setup), ag_(ops_, this) {
    for (std::size_t i = 0; i < kLeaves + 1; ++i) {
      Tensor leaf = Tensor::full({2}, 2.0 + static_cast<double>(i));
      if (setup.is_on_device) leaf = leaf.on(Device::cuda(0));
      leaf.set_requires_grad(true);
      if (i == kLeaves) outer_ = leaf;
      if (i < kLeaves) leaves_.push_back(leaf);
    }
    for (std::size_t i = 0; i < kLeaves; ++i) reach_hook(leaves_[i], leaf_name(i));
  }

  void forward() {
    contexts_.clear();
    nodes_.clear();
    TensorList n;
    const auto make = [&](const Tensor& a, const Tensor& b) {
      const std::size_t i = n.size();
      n.push_back(apply_function(ag_, product(i), {a, b})[0]);
      reach_hook(n.back(), function_name(i));
      nodes_.push_back(n.back().grad_fn().get());
    };
    make(leaves_[0], leaves_[1]);
    make(n[0], leaves_[2]);
    make(n[0], leaves_[3]);
    make(n[1], n[2]);
    make(n[3], leaves_[4]);
    for (std::size_t i = 0; i < kFunctions; ++i) tensors_[i] = n[i];
  }

  void arm(const Fault& fault) {
    const bool is_leaf = is_leaf_name(fault.node);
    const auto number = static_cast<std::size_t>(fault.node.back() - '0');
    const Tensor& tensor = is_leaf ? leaves_[number] : tensors_[number];
    const auto fail = [] { throw Injected("injected"); };
    const std::shared_ptr<Node> node = gradient_edge(ag_, tensor).node;
    switch (fault.place) {
      case ThrowPlace::tensor_hook:
        hook_ = tensor.register_hook([fail](const Tensor&) { return fail(), Tensor(); });
        return;
      case ThrowPlace::prehook:
        hook_ = node->register_prehook([fail](auto&) { return fail(), TensorList(); });
        return;
      case ThrowPlace::posthook:
        hook_ = node->register_hook([fail](auto&, auto&) { return fail(), TensorList(); });
        return;
      case ThrowPlace::post_accumulate:
        hook_ = tensor.register_post_accumulate_grad_hook([fail](auto&) { fail(); });
        return;
      default:
        function_fault_ = fault;
    }
  }

  void disarm() {
    hook_.remove();
    function_fault_.reset();
  }

  // One backward; gradients and events of the one before are cleared.
  SeenGradients run() {
    seen_ = {};
    for (const Tensor& leaf : leaves_) leaf.set_grad({});
    outer_.set_grad({});
    error_ = nullptr;
    try {
      setup_.nesting == Nesting::none ? run_inner() : run_outer();
    } catch (...) {
      error_ = std::current_exception();
    }
    for (const Tensor& leaf : leaves_) seen_.grads.push_back(numbers_of(leaf.grad()));
    seen_.outer_grad = numbers_of(outer_.grad());
    return seen_;
  }

  std::exception_ptr error() const { return error_; }
  bool was_caught() const { return was_caught_; }
  const Autograd& autograd() const { return ag_; }
  bool is_released(std::size_t function) const {
    try {
      return contexts_[function]->saved_tensors().empty();
    } catch (const AutogradError&) {
      return true;
    }
  }

 private:
  void on_node(const Node& node) override {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i] == &node) seen_.executed.push_back(function_name(i));
    const auto* leaf = dynamic_cast<const AccumulateGrad*>(&node);
    for (std::size_t i = 0; i < kLeaves; ++i)
      if (leaf && leaf->leaf().is_same(leaves_[i])) seen_.executed.push_back(leaf_name(i));
  }

  void reach_hook(const Tensor& tensor, const std::string& name) {
    tensor.register_hook([this, name](const Tensor&) {
      if (seen_.reached.empty()) ag_.queue_callback([this] { ++seen_.callbacks; });
      seen_.reached.push_back(name);
      return Tensor();
    });
  }

  CustomFunction product(std::size_t i) {
    CustomFunction function{.name = function_name(i)};
    function.forward = [this](FunctionContext& context, const TensorList& in) {
      contexts_.push_back(&context);
      context.save_for_backward(in);
      return TensorList{mul(ag_, in[0], in[1])};
    };
    function.backward = [this, i](FunctionContext& context, const TensorList& g) {
      const TensorList saved = context.saved_tensors();
      TensorList grads = {mul(ag_, g[0], saved[1]), mul(ag_, g[0], saved[0])};
      if (!function_fault_ || function_fault_->node != function_name(i)) return grads;
      if (function_fault_->place == ThrowPlace::apply) throw Injected("injected");
      if (function_fault_->place == ThrowPlace::wrong_count) grads.push_back(g[0]);
      if (function_fault_->place == ThrowPlace::wrong_shape) grads[1] = Tensor::full({3}, 1.0);
      return grads;
    };
    return function;
  }

  void run_inner() {
    const BackwardOptions options{.retain_graph = setup_.keeps_graph};
    const TensorList root = {tensors_[kFunctions - 1]};
    const GradMode enabled(ag_, true);
    if (!setup_.is_grad_call) return ag_.backward(root, {Tensor::full({2}, 1.0)}, options);
    const TensorList grads = ag_.grad({sum(ag_, root[0])}, leaves_, options);
    for (const Tensor& grad : grads) seen_.grads.push_back(numbers_of(grad));
  }

  void run_outer() {
    const Tensor between = mul(ag_, outer_, 2.0);
    between.register_hook([this](const Tensor&) {
      ag_.queue_callback([this] { ++seen_.outer_callbacks; });
      try {
        run_inner();
      } catch (...) {
        was_caught_ = setup_.nesting == Nesting::caught;
        if (!was_caught_) throw;
      }
      return Tensor();
    });
    ag_.backward(sum(ag_, between));
  }

  Setup setup_;
  CpuOps ops_;
  Autograd ag_;
  TensorList leaves_;
  TensorList tensors_ = TensorList(kFunctions);
  Tensor outer_;
  std::vector<FunctionContext*> contexts_;
  std::vector<const Node*> nodes_;
  std::optional<Fault> function_fault_;
  HookHandle hook_;
  SeenGradients seen_;
  std::exception_ptr error_;
  bool was_caught_ = false;
};

bool can_throw(const Fault& fault, const Setup& setup) {
  const bool is_leaf = is_leaf_name(fault.node);
  if (is_leaf && setup.is_grad_call) return fault.place == ThrowPlace::tensor_hook;  // rule X3
  const bool is_in_function = fault.place == ThrowPlace::apply ||
                              fault.place == ThrowPlace::wrong_shape ||
                              fault.place == ThrowPlace::wrong_count;
  return is_leaf ? !is_in_function : fault.place != ThrowPlace::post_accumulate;
}

bool has_accumulated(ThrowPlace place) {
  return place == ThrowPlace::posthook || place == ThrowPlace::post_accumulate;
}

// What the rules leave of a clean run when node number `at` of it throws.
SeenGradients expected_of(const SeenGradients& clean, std::size_t at, const Fault& fault,
                          const Setup& setup) {
  SeenGradients expected;
  expected.reached.assign(clean.reached.begin(),
                          clean.reached.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  const bool has_begun =
      fault.place != ThrowPlace::tensor_hook && fault.place != ThrowPlace::prehook;
  for (const std::string& name : clean.executed) {
    const auto place = std::find(clean.reached.begin(), clean.reached.end(), name);
    const auto index = static_cast<std::size_t>(place - clean.reached.begin());
    if (index < at || (index == at && has_begun)) expected.executed.push_back(name);
  }
  expected.grads.assign(kLeaves, std::nullopt);
  for (std::size_t i = 0; i < kLeaves && !setup.is_grad_call; ++i) {
    const auto& ran = expected.executed;
    const bool is_there = std::find(ran.begin(), ran.end(), leaf_name(i)) != ran.end();
    if (is_there && (leaf_name(i) != fault.node || has_accumulated(fault.place)))
      expected.grads[i] = clean.grads[i];
  }
  if (setup.nesting == Nesting::caught) {
    expected.outer_grad = clean.outer_grad;
    expected.outer_callbacks = 1;
  }
  return expected;
}

void check_fault(const Setup& setup, const SeenGradients& clean, std::size_t at, ThrowPlace place) {
  const Fault fault{place, clean.reached[at]};
  SCOPED_TRACE(fault.node + ", place " + std::to_string(static_cast<int>(place)));
  World world(setup);
  world.forward();
  world.arm(fault);
  EXPECT_EQ(expected_of(clean, at, fault, setup), world.run());
  EXPECT_EQ(setup.nesting == Nesting::caught, world.error() == nullptr);
  EXPECT_EQ(setup.nesting == Nesting::caught, world.was_caught());
  for (std::size_t i = 0; i < kFunctions; ++i) {
    const auto ran = std::find(clean.reached.begin(), clean.reached.end(), function_name(i));
    const bool has_finished = ran - clean.reached.begin() < static_cast<std::ptrdiff_t>(at);
    EXPECT_EQ(has_finished && !setup.keeps_graph, world.is_released(i)) << function_name(i);
  }
  EXPECT_TRUE(world.autograd().current_graph_task().is_none());
  EXPECT_TRUE(world.autograd().is_grad_enabled());
  world.disarm();
  if (setup.keeps_graph) {
    EXPECT_EQ(clean, world.run()) << "the same graph again";
  }
  world.forward();
  EXPECT_EQ(clean, world.run()) << "a fresh graph";
  EXPECT_EQ(nullptr, world.error());
}

void check_every_fault(const Setup& setup) {
  World world(setup);
  world.forward();
  const SeenGradients clean = world.run();
  ASSERT_EQ(nullptr, world.error());
  ASSERT_EQ(kFunctions + kLeaves, clean.reached.size());
  ASSERT_EQ(1, clean.callbacks);
  std::size_t faults = 0;
  for (std::size_t at = 0; at < clean.reached.size(); ++at)
    for (const ThrowPlace place : kPlaces) {
      if (!can_throw({place, clean.reached[at]}, setup)) continue;
      check_fault(setup, clean, at, place);
      ++faults;
    }
  EXPECT_EQ(setup.is_grad_call ? 6 * kFunctions + kLeaves : 6 * kFunctions + 4 * kLeaves, faults);
}

TEST(Exception, At_every_node_leaves_what_the_rules_say) {
  for (const Nesting nesting : {Nesting::none, Nesting::uncaught, Nesting::caught})
    for (const bool is_on_device : {false, true})
      for (const bool keeps_graph : {false, true})
        for (const bool is_grad_call : {false, true}) {
          SCOPED_TRACE("nesting " + std::to_string(static_cast<int>(nesting)) + ", device " +
                       std::to_string(is_on_device) + ", retain_graph " +
                       std::to_string(keeps_graph) + ", grad " + std::to_string(is_grad_call));
          check_every_fault({nesting, is_on_device, keeps_graph, is_grad_call});
        }
}

// Rules C5 and C1: callbacks after the one that throws are skipped, all gradients are there.
TEST(Exception, In_a_callback_skips_the_later_ones_alone) {
  constexpr int kCallbacks = 4;
  for (const Device device : {Device::cpu(), Device::cuda(0)})
    for (int bad = 0; bad < kCallbacks; ++bad) {
      const CpuOps ops;
      Autograd ag(ops);
      const Tensor x = Tensor::full({2}, 1.0).on(device);
      x.set_requires_grad(true);
      std::vector<int> ran;
      const Tensor y = mul(ag, x, 3.0);
      y.register_hook([&](const Tensor&) {
        for (int i = 0; i < kCallbacks; ++i)
          ag.queue_callback([&, i] {
            ran.push_back(i);
            if (i == bad) throw Injected("injected");
          });
        return Tensor();
      });
      EXPECT_THROW(ag.backward(sum(ag, y)), Injected);
      EXPECT_EQ(bad + 1, static_cast<int>(ran.size()));
      EXPECT_EQ((std::vector<double>{3, 3}), x.grad().values());
      EXPECT_TRUE(ag.current_graph_task().is_none());
      ag.backward(sum(ag, mul(ag, x, 1.0)));
      EXPECT_EQ(bad + 1, static_cast<int>(ran.size())) << "nothing of it is carried over";
      EXPECT_EQ((std::vector<double>{4, 4}), x.grad().values());
    }
}

}  // namespace
}  // namespace zeroproof
