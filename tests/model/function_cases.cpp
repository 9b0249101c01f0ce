#include "tests/model/function_cases.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/functions/activations.h"
#include "model/functions/attention.h"
#include "model/functions/indexing.h"
#include "model/functions/losses.h"
#include "model/functions/normalization.h"
#include "model/functions/scalars.h"
#include "zeroproof/internal/model/global_state.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using X = const TensorList&;
using Cases = std::vector<FunctionCase>;

const Shape kMatrix = {3, 4};
const Shape kHeads = {2, 2, 3, 4};
const Classes kClasses = {{2, 0, 1}};
const Classes kIgnored = {{2, -100, 1}};
const Indices kRows = {{1, 3, 0, 1}, {2, 2}};
const std::vector<std::int64_t> kPicked = {2, 0, 2};
const Indices kGathered = {{0, 2, 3, 3, 1, 0}, {3, 2}};
const Mask kMask = {{true, false, false, true}, {1, 4}};

void add_pointwise(Cases& cases) {
  const Shape& m = kMatrix;
  cases.push_back({"add", {m, {4}}, [](auto& ag, X x) { return add(ag, x[0], x[1]); }});
  cases.push_back({"sub", {m, {3, 1}}, [](auto& ag, X x) { return sub(ag, x[0], x[1]); }});
  cases.push_back({"mul", {m, {4}}, [](auto& ag, X x) { return mul(ag, x[0], x[1]); }});
  cases.push_back({"div", {m, {4}}, [](auto& ag, X x) { return div(ag, x[0], x[1]); }});
  cases.push_back({"neg", {m}, [](auto& ag, X x) { return neg(ag, x[0]); }});
  cases.push_back({"pow", {m}, [](auto& ag, X x) { return pow(ag, x[0], 3.0); }});
  cases.push_back({"abs", {m}, [](auto& ag, X x) { return abs(ag, add(ag, x[0], -1.0)); }});
  cases.push_back({"sqrt", {m}, [](auto& ag, X x) { return sqrt(ag, x[0]); }});
  cases.push_back({"exp", {m}, [](auto& ag, X x) { return exp(ag, neg(ag, x[0])); }});
  cases.push_back({"log", {m}, [](auto& ag, X x) { return log(ag, x[0]); }});
  cases.push_back({"tanh", {m}, [](auto& ag, X x) { return tanh(ag, x[0]); }});
  cases.push_back({"relu", {m}, [](auto& ag, X x) { return relu(ag, add(ag, x[0], -0.7)); }});
  cases.push_back({"sin", {m}, [](auto& ag, X x) { return sin(ag, x[0]); }});
  cases.push_back({"cos", {m}, [](auto& ag, X x) { return cos(ag, x[0]); }});
  cases.push_back({"clone", {m}, [](auto& ag, X x) { return clone(ag, x[0]); }});
  cases.push_back({"sq", {m}, [](auto& ag, X x) { return sq(ag, x[0]); }});
  cases.push_back({"add_scalar", {m}, [](auto& ag, X x) { return add_scalar(ag, x[0], 0.5); }});
  cases.push_back({"mul_scalar", {m}, [](auto& ag, X x) { return mul_scalar(ag, x[0], 0.5); }});
  cases.push_back({"div_scalar", {m}, [](auto& ag, X x) { return div_scalar(ag, x[0], 3.0); }});
  cases.push_back({"dropout", {m}, [](auto& ag, X x) {
                     ag.global().rng.manual_seed(3);
                     return dropout(ag, x[0], 0.4);
                   }});
  cases.push_back({"erf", {m}, [](auto& ag, X x) { return erf(ag, x[0]); }});
  cases.push_back(
      {"rsqrt", {m}, [](auto& ag, X x) { return rsqrt(ag, add(ag, mul(ag, x[0], x[0]), 1.0)); }});
  cases.push_back({"sigmoid", {m}, [](auto& ag, X x) { return sigmoid(ag, x[0]); }});
  cases.push_back({"silu", {m}, [](auto& ag, X x) { return silu(ag, x[0]); }});
  cases.push_back({"gelu", {m}, [](auto& ag, X x) { return gelu(ag, x[0]); }});
  cases.push_back({"gelu_tanh", {m}, [](auto& ag, X x) { return gelu(ag, x[0], GeluForm::tanh); }});
}

void add_reductions(Cases& cases) {
  const Shape& m = kMatrix;
  cases.push_back({"sum", {m}, [](auto& ag, X x) { return sum(ag, x[0]); }});
  cases.push_back({"sum_dims", {m}, [](auto& ag, X x) { return sum(ag, x[0], {1}, KeepDim::no); }});
  cases.push_back({"sum_to", {m}, [](auto& ag, X x) { return sum_to(ag, x[0], {4}); }});
  cases.push_back({"expand", {{4}}, [](auto& ag, X x) { return expand(ag, x[0], {3, 4}); }});
  cases.push_back({"mean", {m}, [](auto& ag, X x) { return mean(ag, x[0]); }});
  cases.push_back({"mean_dims", {{2, 3, 2}}, [](auto& ag, X x) {
                     return mean(ag, x[0], {0, 2}, KeepDim::no);
                   }});
  cases.push_back(
      {"mean_keepdim", {m}, [](auto& ag, X x) { return mean(ag, x[0], {1}, KeepDim::yes); }});
  cases.push_back({"softmax", {m}, [](auto& ag, X x) { return softmax(ag, x[0], 1); }});
  cases.push_back({"softmax_first", {m}, [](auto& ag, X x) { return softmax(ag, x[0], 0); }});
  cases.push_back({"log_softmax", {m}, [](auto& ag, X x) { return log_softmax(ag, x[0], 1); }});
  cases.push_back({"topk", {m}, [](auto& ag, X x) { return topk(ag, x[0], 2, 1).values; }});
  cases.push_back({"max", {m}, [](auto& ag, X x) { return max(ag, x[0], 0).values; }});
  cases.push_back({"layer_norm", {m, {4}, {4}}, [](auto& ag, X x) {
                     return layer_norm(ag, x[0], x[1], x[2], {{4}});
                   }});
  cases.push_back(
      {"layer_norm_plain", {m}, [](auto& ag, X x) { return layer_norm(ag, x[0], {}, {}, {{4}}); }});
  cases.push_back({"layer_norm_two", {{2, 2, 3}, {2, 3}}, [](auto& ag, X x) {
                     return layer_norm(ag, x[0], x[1], {}, {{2, 3}, 0.1});
                   }});
  cases.push_back(
      {"rms_norm", {m, {4}}, [](auto& ag, X x) { return rms_norm(ag, x[0], x[1], {{4}}); }});
  cases.push_back({"rms_norm_plain", {m}, [](auto& ag, X x) {
                     return rms_norm(ag, x[0], {}, {{4}, 0.1});
                   }});
}

void add_products(Cases& cases) {
  cases.push_back({"mm", {{2, 3}, {3, 4}}, [](auto& ag, X x) { return mm(ag, x[0], x[1]); }});
  cases.push_back(
      {"addmm", {{4}, {2, 3}, {3, 4}}, [](auto& ag, X x) { return addmm(ag, x[0], x[1], x[2]); }});
  cases.push_back(
      {"bmm", {{2, 2, 3}, {2, 3, 2}}, [](auto& ag, X x) { return bmm(ag, x[0], x[1]); }});
  cases.push_back(
      {"matmul", {{2, 2, 3}, {3, 2}}, [](auto& ag, X x) { return matmul(ag, x[0], x[1]); }});
  cases.push_back({"linear", {{2, 2, 3}, {4, 3}, {4}}, [](auto& ag, X x) {
                     return linear(ag, x[0], x[1], x[2]);
                   }});
  cases.push_back(
      {"scaled_dot_product_attention", {{1, 2, 2}, {1, 2, 2}, {1, 2, 3}}, [](auto& ag, X x) {
         return scaled_dot_product_attention(ag, {x[0], x[1], x[2]});
       }});
  cases.push_back({"attention", {kHeads, kHeads, kHeads}, [](auto& ag, X x) {
                     return scaled_dot_product_attention(ag, {x[0], x[1], x[2]});
                   }});
  cases.push_back({"attention_causal", {kHeads, kHeads, kHeads}, [](auto& ag, X x) {
                     return scaled_dot_product_attention(ag, {x[0], x[1], x[2]}, Causal::yes);
                   }});
}

void add_shapes(Cases& cases) {
  const Shape& m = kMatrix;
  cases.push_back({"t", {m}, [](auto& ag, X x) { return t(ag, x[0]); }});
  cases.push_back(
      {"transpose", {{2, 3, 2}}, [](auto& ag, X x) { return transpose(ag, x[0], 0, 2); }});
  cases.push_back({"movedim", {{2, 3, 2}}, [](auto& ag, X x) { return movedim(ag, x[0], 0, 2); }});
  cases.push_back({"view", {m}, [](auto& ag, X x) { return view(ag, x[0], {2, 6}); }});
  cases.push_back({"unsafe_view", {m}, [](auto& ag, X x) {
                     return unsafe_view(ag, x[0], {2, 6});
                   }});
  cases.push_back({"reshape", {m}, [](auto& ag, X x) { return reshape(ag, t(ag, x[0]), {2, 6}); }});
  cases.push_back({"unsqueeze", {m}, [](auto& ag, X x) { return unsqueeze(ag, x[0], 1); }});
  cases.push_back({"squeeze", {{3, 1, 2}}, [](auto& ag, X x) { return squeeze(ag, x[0], 1); }});
  cases.push_back({"narrow", {m}, [](auto& ag, X x) { return narrow(ag, x[0], 1, {1, 2}); }});
  cases.push_back({"cat", {{2, 2}, {2, 3}}, [](auto& ag, X x) {
                     return cat(ag, {x[0], x[1]}, 1);
                   }});
  cases.push_back({"chunk", {m}, [](auto& ag, X x) { return chunk(ag, x[0], 2, 1)[1]; }});
  cases.push_back({"unbind", {m}, [](auto& ag, X x) { return unbind(ag, x[0], 1)[1]; }});
  cases.push_back({"stack", {{3}, {3}}, [](auto& ag, X x) { return stack(ag, {x[0], x[1]}, 1); }});
  cases.push_back({"to", {m}, [](auto& ag, X x) { return to(ag, x[0], x[0].dtype()); }});
  cases.push_back(
      {"embedding", {{5, 4}}, [](auto& ag, X x) { return embedding(ag, x[0], kRows); }});
  cases.push_back(
      {"index_select", {m}, [](auto& ag, X x) { return index_select(ag, x[0], 1, kPicked); }});
  cases.push_back({"index_add", {m, {3, 3}}, [](auto& ag, X x) {
                     return index_add(ag, x[0], 1, kPicked, x[1]);
                   }});
  cases.push_back({"gather", {m}, [](auto& ag, X x) { return gather(ag, x[0], 1, kGathered); }});
  cases.push_back({"scatter_add", {m, {3, 2}}, [](auto& ag, X x) {
                     return scatter_add(ag, x[0], 1, kGathered, x[1]);
                   }});
  cases.push_back(
      {"masked_fill", {m}, [](auto& ag, X x) { return masked_fill(ag, x[0], kMask, -1.5); }});
  cases.push_back({"where", {m, m}, [](auto& ag, X x) { return where(ag, kMask, x[0], x[1]); }});
}

void add_losses(Cases& cases) {
  const std::vector<Shape> pair = {kMatrix, kMatrix};
  const Shape& m = kMatrix;
  cases.push_back({"mse_loss", pair, [](auto& ag, X x) { return mse_loss(ag, x[0], x[1]); }});
  cases.push_back({"mse_loss_sum", pair,
                   [](auto& ag, X x) { return mse_loss(ag, x[0], x[1], Reduction::sum); }});
  cases.push_back({"mse_loss_none", pair,
                   [](auto& ag, X x) { return mse_loss(ag, x[0], x[1], Reduction::none); }});
  cases.push_back({"l1_loss", pair, [](auto& ag, X x) { return l1_loss(ag, x[0], x[1]); }});
  cases.push_back(
      {"l1_loss_sum", pair, [](auto& ag, X x) { return l1_loss(ag, x[0], x[1], Reduction::sum); }});
  cases.push_back({"nll_loss", {m}, [](auto& ag, X x) { return nll_loss(ag, x[0], kClasses); }});
  cases.push_back({"nll_loss_none", {m}, [](auto& ag, X x) {
                     return nll_loss(ag, x[0], kIgnored, Reduction::none);
                   }});
  cases.push_back(
      {"cross_entropy", {m}, [](auto& ag, X x) { return cross_entropy(ag, x[0], kClasses); }});
  cases.push_back({"cross_entropy_ignored", {m}, [](auto& ag, X x) {
                     return cross_entropy(ag, x[0], kIgnored);
                   }});
  cases.push_back({"cross_entropy_sum", {m}, [](auto& ag, X x) {
                     return cross_entropy(ag, x[0], kIgnored, Reduction::sum);
                   }});
}

}  // namespace

const std::vector<FunctionCase>& function_cases() {
  static const Cases kCases = [] {
    Cases cases;
    add_pointwise(cases);
    add_reductions(cases);
    add_products(cases);
    add_shapes(cases);
    add_losses(cases);
    return cases;
  }();
  return kCases;
}

TensorList inputs_of(const FunctionCase& function) {
  TensorList inputs;
  int next = 3;
  for (const Shape& shape : function.shapes) {
    std::vector<double> values(static_cast<std::size_t>(numel(shape)));
    for (double& element : values) element = 0.31 + 0.0173 * ((next += 37) % 101);
    inputs.push_back(Tensor::of(values, shape));
    inputs.back().set_requires_grad(true);
  }
  return inputs;
}

Tensor weighted_sum(Autograd& ag, const Tensor& result) {
  std::vector<double> weights(static_cast<std::size_t>(result.numel()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 0.7 + 0.31 * static_cast<double>(i);
  return sum(ag, mul(ag, result, Tensor::of(weights, result.sizes())));
}

Tensor gradient_penalty(Autograd& ag, const FunctionCase& function, const TensorList& inputs) {
  const Tensor first = sq(ag, function.body(ag, inputs));
  Tensor total = first;
  for (const Tensor& grad : ag.grad({first}, inputs, {.create_graph = true}))
    if (grad.is_defined()) total = add(ag, total, sq(ag, grad));
  return total;
}

void expect_central_differences(Autograd& ag, const TensorList& inputs,
                                const std::function<Tensor()>& loss, const TensorList& grads,
                                const std::string& name) {
  constexpr double kStep = 1e-5;
  double scale = 1.0;
  for (const Tensor& grad : grads)
    for (const double slope : grad.values()) scale = std::max(scale, std::abs(slope));
  const GradMode mode(ag, true);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t e = 0; e < grads[i].values().size(); ++e) {
      double& element = inputs[i].impl().storage->elements[e];
      const double before = element;
      element = before + kStep;
      const double above = loss().item();
      element = before - kStep;
      const double below = loss().item();
      element = before;
      EXPECT_NEAR((above - below) / (2 * kStep), grads[i].values()[e], 1e-7 * scale)
          << name << " input " << i << " element " << e;
    }
  }
}

}  // namespace zeroproof
