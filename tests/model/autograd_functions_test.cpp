// Every operation's derivative against central differences, and types against their definition.
#include "zeroproof/model/functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "model/cpu_ops.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof {
namespace {

using Body = std::function<Tensor(Autograd&, const TensorList&)>;

struct OpCase {
  const char* name;
  std::vector<Shape> shapes;
  Body body;
};

// Distinct, positive, away from the kinks.
TensorList inputs_of(const OpCase& op) {
  TensorList inputs;
  double value = 0.3;
  for (const Shape& shape : op.shapes) {
    std::vector<double> values(static_cast<std::size_t>(numel(shape)));
    for (double& element : values) element = (value += 0.137);
    inputs.push_back(Tensor::of(values, shape));
    inputs.back().set_requires_grad(true);
  }
  return inputs;
}

// Weighted, so that no two elements of the result count the same.
Tensor loss_of(Autograd& ag, const Tensor& result) {
  std::vector<double> weights(static_cast<std::size_t>(result.numel()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.7 + 0.31 * static_cast<double>(i);
  return sum(ag, mul(ag, result, Tensor::of(weights, result.sizes())));
}

void expect_numeric_gradients(Autograd& ag, const TensorList& inputs,
                              const std::function<Tensor()>& loss, const TensorList& grads,
                              const std::string& name) {
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t e = 0; e < grads[i].values().size(); ++e) {
      double& element = inputs[i].impl().storage->elements[e];
      const double before = element;
      const GradMode mode(ag, true);
      element = before + kStep;
      const double above = loss().item();
      element = before - kStep;
      const double below = loss().item();
      element = before;
      EXPECT_NEAR((above - below) / (2 * kStep), grads[i].values()[e], 1e-7)
          << name << " input " << i << " element " << e;
    }
  }
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> kCases = {
      {"add", {{2, 3}, {3}}, [](Autograd& ag, const TensorList& x) { return add(ag, x[0], x[1]); }},
      {"sub", {{2, 3}, {2, 1}}, [](Autograd& ag, auto& x) { return sub(ag, x[0], x[1]); }},
      {"mul", {{2, 3}, {3}}, [](Autograd& ag, auto& x) { return mul(ag, x[0], x[1]); }},
      {"div", {{2, 3}, {3}}, [](Autograd& ag, auto& x) { return div(ag, x[0], x[1]); }},
      {"neg", {{3}}, [](Autograd& ag, auto& x) { return neg(ag, x[0]); }},
      {"pow", {{3}}, [](Autograd& ag, auto& x) { return pow(ag, x[0], 3.0); }},
      {"abs", {{3}}, [](Autograd& ag, auto& x) { return abs(ag, neg(ag, x[0])); }},
      {"sqrt", {{3}}, [](Autograd& ag, auto& x) { return sqrt(ag, x[0]); }},
      {"tanh", {{3}}, [](Autograd& ag, auto& x) { return tanh(ag, x[0]); }},
      {"relu", {{4}}, [](Autograd& ag, auto& x) { return relu(ag, add(ag, x[0], -0.65)); }},
      {"sin", {{3}}, [](Autograd& ag, auto& x) { return sin(ag, x[0]); }},
      {"cos", {{3}}, [](Autograd& ag, auto& x) { return cos(ag, x[0]); }},
      {"sum", {{2, 3}}, [](Autograd& ag, auto& x) { return sum(ag, x[0]); }},
      {"sum_to", {{2, 3}}, [](Autograd& ag, auto& x) { return sum_to(ag, x[0], {3}); }},
      {"expand",
       {{3}},
       [](Autograd& ag, auto& x) {
         return expand(ag, x[0], {2, 3});
       }},
      {"mm", {{2, 3}, {3, 4}}, [](Autograd& ag, auto& x) { return mm(ag, x[0], x[1]); }},
      {"mm_t",
       {{3, 2}, {4, 3}},
       [](Autograd& ag, auto& x) { return mm(ag, t(ag, x[0]), t(ag, x[1])); }},
      {"addmm",
       {{4}, {2, 3}, {3, 4}},
       [](Autograd& ag, auto& x) { return addmm(ag, x[0], x[1], x[2]); }},
      {"view",
       {{2, 3}},
       [](Autograd& ag, auto& x) {
         return view(ag, x[0], {3, 2});
       }},
      {"clone", {{3}}, [](Autograd& ag, auto& x) { return clone(ag, x[0]); }},
      {"cat",
       {{2}, {3}},
       [](Autograd& ag, auto& x) {
         return cat(ag, {x[0], x[1]});
       }},
      {"unbind", {{3, 2}}, [](Autograd& ag, auto& x) { return unbind(ag, x[0], 1)[1]; }},
      {"stack",
       {{3}, {3}},
       [](Autograd& ag, auto& x) {
         return stack(ag, {x[0], x[1]}, 1);
       }},
      {"linear",
       {{2, 2, 3}, {4, 3}, {4}},
       [](Autograd& ag, auto& x) { return linear(ag, x[0], x[1], x[2]); }},
  };
  return kCases;
}

TEST(Functions, Have_the_derivative_of_central_differences) {
  const CpuOps ops;
  for (const OpCase& op : op_cases()) {
    Autograd ag(ops);
    const TensorList inputs = inputs_of(op);
    const auto loss = [&] { return loss_of(ag, op.body(ag, inputs)); };
    expect_numeric_gradients(ag, inputs, loss, ag.grad({loss()}, inputs), op.name);
  }
}

// The gradient's own sum of squares is differentiated, through the nodes that the backward made.
TEST(Functions, Have_the_second_derivative_of_central_differences) {
  const CpuOps ops;
  for (const OpCase& op : op_cases()) {
    Autograd ag(ops);
    const TensorList inputs = inputs_of(op);
    const auto penalty = [&] {
      const Tensor first = sq(ag, op.body(ag, inputs));
      Tensor total = first;
      for (const Tensor& grad : ag.grad({first}, inputs, {.create_graph = true}))
        total = add(ag, total, sq(ag, grad));
      return total;
    };
    const TensorList grads = ag.grad({penalty()}, inputs);
    const double scale = 1.0 + std::abs(penalty().item());
    const auto scaled = [&] { return div(ag, penalty(), scale); };
    TensorList scaled_grads;
    for (const Tensor& grad : grads) scaled_grads.push_back(div(ag, grad, scale));
    expect_numeric_gradients(ag, inputs, scaled, scaled_grads, op.name);
  }
}

TEST(DTypes, Round_to_nearest_even) {
  EXPECT_EQ(1.0, round_to(DType::bfloat16, 1.0 + 0x1p-8));
  EXPECT_EQ(1.0 + 0x1p-6, round_to(DType::bfloat16, 1.0 + 3 * 0x1p-8));
  EXPECT_EQ(1.0, round_to(DType::float16, 1.0 + 0x1p-11));
  EXPECT_EQ(65504.0, round_to(DType::float16, 65519.0));
  EXPECT_EQ(INFINITY, round_to(DType::float16, 65520.0));
  EXPECT_EQ(0x1p-24, round_to(DType::float16, 0x1.8p-25));
  EXPECT_EQ(0.0, round_to(DType::float16, 0x1p-25));
}

// bfloat16 is float32 cut to its upper half.
TEST(DTypes, Bfloat16_agrees_with_the_bits_of_float32) {
  for (std::uint32_t i = 1; i < 0x7f80; ++i) {
    const double value = std::bit_cast<float>(i << 16U);
    EXPECT_EQ(value, round_to(DType::bfloat16, value));
    const double next = std::bit_cast<float>((i + 1) << 16U);
    if (!std::isfinite(next)) continue;
    EXPECT_EQ(i % 2 == 0 ? value : next, round_to(DType::bfloat16, (value + next) / 2)) << i;
  }
}

}  // namespace
}  // namespace zeroproof
