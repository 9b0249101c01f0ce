// Rule H6 where tasks nest. True values are those of PyTorch 2.11.0.
#include "model/multi_grad_hook.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/cpu_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

Tensor scalar_leaf(double value) {
  const Tensor tensor = Tensor::full({1}, value);
  tensor.set_requires_grad(true);
  return tensor;
}

TEST(MultiGradHook, Any_skips_what_needs_no_gradient_and_all_refuses_it) {
  const CpuOps ops;
  Autograd ag(ops);
  int calls = 0;
  const Tensor x = scalar_leaf(1.0);
  const TensorList tensors = {Tensor::full({1}, 1.0), x};
  register_any_grad_hook(ag, tensors, [&](const Tensor&) { ++calls; });
  EXPECT_THROW(register_multi_grad_hook(ag, tensors, [](const TensorList&) {}), AutogradError);
  ag.backward(mul(ag, x, 2.0));
  EXPECT_EQ(1, calls);
}

// Outer task: b, then a nested one that reaches a alone, then a.
class NestedMultiGradHook : public ::testing::Test {
 protected:
  void run() {
    const Tensor w = mul(ag, a, 7.0);
    const Tensor u = mul(ag, scalar_leaf(1.0), 1.0);
    const Tensor t = mul(ag, b, 2.0);
    u.register_hook([this](const Tensor&) {
      const GradMode enabled(ag, true);
      ag.backward(mul(ag, a, 3.0));
      return Tensor();
    });
    ag.backward(add(ag, add(ag, t, u), w));
  }

  CpuOps ops;
  Autograd ag{ops};
  std::vector<std::string> events;
  const Tensor a = scalar_leaf(1.0);
  const Tensor b = scalar_leaf(1.0);
};

TEST_F(NestedMultiGradHook, Any_fires_once_a_task) {
  register_any_grad_hook(ag, {a, b}, [&](const Tensor& grad) {
    events.push_back(std::to_string(static_cast<int>(grad.item())));
  });
  run();
  EXPECT_EQ((std::vector<std::string>{"2", "3"}), events);
}

// PyTorch keeps one expected count for all tasks: the nested one overwrites the outer one's.
TEST_F(NestedMultiGradHook, All_forgets_the_count_of_the_outer_task) {
  register_multi_grad_hook(ag, {a, b}, [&](const TensorList& grads) {
    for (const Tensor& grad : grads)
      events.push_back(grad.is_defined() ? std::to_string(static_cast<int>(grad.item())) : "none");
  });
  run();
  EXPECT_EQ((std::vector<std::string>{"3", "none"}), events);
}

}  // namespace
}  // namespace zeroproof
