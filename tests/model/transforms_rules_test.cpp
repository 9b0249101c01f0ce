// Every operation's rules for function transforms: against slices, and against central differences
// of what lies one derivative below.
#include <gtest/gtest.h>

#include "tests/model/transform_cases.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using testing::central_differences;
using testing::difference;
using testing::function_of;
using testing::inputs_of;
using testing::loss_of;
using testing::TransformCase;
using testing::unit_tangents;
using testing::values_of;

constexpr double kExact = 1e-12;
constexpr double kNumeric = 1e-7;
constexpr int kRuleBatch = 3;

class EveryOp : public ::testing::TestWithParam<TransformCase> {
 protected:
  func::Function function() { return function_of(ag_, GetParam()); }
  func::Function loss() { return loss_of(ag_, function()); }
  TensorList inputs() const { return inputs_of(GetParam()); }
  func::Argnums all() const {
    func::Argnums argnums;
    for (std::size_t i = 0; i < GetParam().sizes.size(); ++i)
      argnums.push_back(static_cast<std::int64_t>(i));
    return argnums;
  }

  // Three sets of inputs, and all of them stacked along `dim`.
  struct Batch {
    std::vector<TensorList> examples;
    TensorList stacked;
  };
  Batch batch(std::size_t dim = 0) {
    Batch batch;
    for (int i = 0; i < kRuleBatch; ++i) batch.examples.push_back(inputs_of(GetParam(), 0.05 * i));
    for (std::size_t i = 0; i < GetParam().sizes.size(); ++i) {
      TensorList slices;
      for (const TensorList& example : batch.examples) slices.push_back(example[i]);
      const auto place = std::min(dim, GetParam().sizes[i].size());
      batch.stacked.push_back(stack(ag_, slices, static_cast<std::int64_t>(place)));
    }
    return batch;
  }

  // f of each example, its outputs stacked.
  TensorList slice_wise(const func::Function& f, const std::vector<TensorList>& examples) {
    std::vector<TensorList> results;
    for (const TensorList& example : examples) results.push_back(f(example));
    TensorList stacked;
    for (std::size_t o = 0; o < results[0].size(); ++o) {
      TensorList slices;
      for (const TensorList& result : results) slices.push_back(result[o]);
      stacked.push_back(stack(ag_, slices, 0));
    }
    return stacked;
  }

  void expect_like_slices(const func::Function& f) {
    const Batch batch = this->batch();
    const TensorList mapped = func::vmap(ag_, f)(batch.stacked);
    const TensorList expected = slice_wise(f, batch.examples);
    ASSERT_EQ(expected.size(), mapped.size());
    for (std::size_t o = 0; o < mapped.size(); ++o)
      EXPECT_EQ(expected[o].sizes(), mapped[o].sizes());
    EXPECT_EQ("", difference(values_of(expected), values_of(mapped), kExact));
  }

  // `jacobians` of f, outputs first, against f's own values.
  void expect_derivative(const func::Function& f, const TensorList& jacobians) {
    const TensorList inputs = this->inputs();
    const std::size_t outputs = jacobians.size() / inputs.size();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto width = static_cast<std::size_t>(inputs[i].numel());
      for (std::size_t e = 0; e < width; ++e) {
        std::vector<double> column;
        for (std::size_t o = 0; o < outputs; ++o) {
          const std::vector<double> values = jacobians[o * inputs.size() + i].values();
          for (std::size_t row = 0; row < values.size() / width; ++row)
            column.push_back(values[row * width + e]);
        }
        const auto slopes = central_differences(f, inputs, unit_tangents(inputs, i, e));
        EXPECT_EQ("", difference(slopes, column, kNumeric)) << "input " << i << " element " << e;
      }
    }
  }

  CpuOps ops_;
  Autograd ag_{ops_};
};

TEST_P(EveryOp, Maps_like_its_slices) {
  expect_like_slices(function());
}

TEST_P(EveryOp, Maps_over_any_one_of_its_inputs) {
  const Batch batch = this->batch();
  for (std::size_t mapped = 0; mapped < batch.stacked.size(); ++mapped) {
    func::VmapDims dims;
    dims.in.assign(batch.stacked.size(), std::nullopt);
    dims.in[mapped] = 0;
    TensorList args = inputs();
    std::vector<TensorList> examples(kRuleBatch, args);
    args[mapped] = batch.stacked[mapped];
    for (std::size_t i = 0; i < kRuleBatch; ++i) examples[i][mapped] = batch.examples[i][mapped];
    const TensorList actual = func::vmap(ag_, function(), dims)(args);
    const TensorList expected = slice_wise(function(), examples);
    EXPECT_EQ("", difference(values_of(expected), values_of(actual), kExact)) << mapped;
  }
}

TEST_P(EveryOp, Maps_over_the_last_dimension_of_inputs_and_outputs) {
  const Batch batch = this->batch(9);
  func::VmapDims dims;
  dims.in.assign(batch.stacked.size(), -1);
  const TensorList expected = slice_wise(function(), batch.examples);
  dims.out.assign(expected.size(), -1);
  const TensorList actual = func::vmap(ag_, function(), dims)(batch.stacked);
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const auto last = static_cast<std::int64_t>(actual[o].sizes().size()) - 1;
    EXPECT_EQ("",
              difference(expected[o].values(), movedim(ag_, actual[o], last, 0).values(), kExact));
  }
}

TEST_P(EveryOp, Maps_inside_a_map) {
  const func::Function inner = func::vmap(ag_, function());
  const Batch batch = this->batch();
  TensorList twice;
  for (const Tensor& stacked : batch.stacked)
    twice.push_back(stack(ag_, {stacked, mul(ag_, stacked, 1.5)}, 0));
  std::vector<TensorList> halves(2);
  for (const Tensor& each : twice) {
    const TensorList slices = unbind(ag_, each, 0);
    for (std::size_t half = 0; half < 2; ++half) halves[half].push_back(clone(ag_, slices[half]));
  }
  const TensorList expected = slice_wise(inner, halves);
  EXPECT_EQ("", difference(values_of(expected), values_of(func::vmap(ag_, inner)(twice)), kExact));
}

TEST_P(EveryOp, Has_the_gradient_of_central_differences) {
  expect_derivative(loss(), func::grad(ag_, loss(), all())(inputs()));
}

TEST_P(EveryOp, Has_the_tangents_of_central_differences) {
  const TensorList inputs = this->inputs();
  const TensorList direction = inputs_of(GetParam(), -0.6);
  const func::Jvp pushed = func::jvp(ag_, function(), inputs, direction);
  EXPECT_EQ("", difference(values_of(function()(inputs)), values_of(pushed.outputs), kExact));
  EXPECT_EQ("", difference(central_differences(function(), inputs, direction),
                           values_of(pushed.tangents), kNumeric));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const func::Argnums one = {static_cast<std::int64_t>(i)};
    TensorList alone = unit_tangents(inputs, inputs.size(), 0);
    alone[i] = direction[i];
    const func::Jvp partly = func::jvp(ag_, function(), inputs, {direction[i]}, one);
    EXPECT_EQ("", difference(central_differences(function(), inputs, alone),
                             values_of(partly.tangents), kNumeric));
  }
}

TEST_P(EveryOp, Has_the_same_jacobian_forward_and_backward) {
  const TensorList backward = func::jacrev(ag_, function(), all())(inputs());
  expect_derivative(function(), backward);
  const TensorList forward = func::jacfwd(ag_, function(), all())(inputs());
  EXPECT_EQ("", difference(values_of(backward), values_of(forward), kExact));
}

// The derivative of a gradient, in every way to combine two transforms.
TEST_P(EveryOp, Has_the_second_derivatives_of_central_differences) {
  const func::Function gradient = func::grad(ag_, loss(), all());
  const TensorList hessian = func::hessian(ag_, loss(), all())(inputs());
  expect_derivative(gradient, hessian);
  const auto expect_equal = [&](const func::Function& f, const char* name) {
    EXPECT_EQ("", difference(values_of(hessian), values_of(f(inputs())), 1e-11)) << name;
  };
  expect_equal(func::jacrev(ag_, gradient, all()), "jacrev of grad");
  expect_equal(func::jacfwd(ag_, gradient, all()), "jacfwd of grad");
  expect_equal(func::jacrev(ag_, func::jacrev(ag_, loss(), all()), all()), "jacrev of jacrev");
  expect_equal(func::jacrev(ag_, func::jacfwd(ag_, loss(), all()), all()), "jacrev of jacfwd");
  expect_equal(func::jacfwd(ag_, func::jacfwd(ag_, loss(), all()), all()), "jacfwd of jacfwd");
}

TEST_P(EveryOp, Has_a_gradient_of_its_gradient) {
  const func::Function penalty = loss_of(ag_, func::grad(ag_, loss(), all()));
  expect_derivative(penalty, func::grad(ag_, penalty, all())(inputs()));
}

TEST_P(EveryOp, Maps_its_gradient_like_slices) {
  expect_like_slices(func::grad(ag_, loss(), all()));
  expect_like_slices(func::hessian(ag_, loss(), all()));
}

// The gradient of a sum over the batch is each example's own.
TEST_P(EveryOp, Has_the_gradient_of_its_map) {
  const Batch batch = this->batch();
  const func::Function total = [&](const TensorList& args) {
    return TensorList{sum(ag_, func::vmap(ag_, loss())(args)[0])};
  };
  const TensorList expected = slice_wise(func::grad(ag_, loss(), all()), batch.examples);
  const TensorList actual = func::grad(ag_, total, all())(batch.stacked);
  EXPECT_EQ("", difference(values_of(expected), values_of(actual), kExact));
}

// What a transform returns carries the graph of what it captured (rule T7).
TEST_P(EveryOp, Leaves_a_graph_of_captured_leaves) {
  const TensorList leaves = inputs();
  for (const Tensor& leaf : leaves) leaf.set_requires_grad(true);
  const Tensor one = Tensor::full({}, 1.25);
  const func::Function scaled = [&](const TensorList& args) {
    TensorList inputs;
    for (const Tensor& leaf : leaves) inputs.push_back(mul(ag_, leaf, args[0]));
    return loss()(inputs);
  };
  const auto result = [&] { return func::grad(ag_, scaled)({one})[0]; };
  const TensorList grads = ag_.grad({result()}, leaves);
  const func::Function of_leaves = [&](const TensorList& args) {
    const func::Function captured = [&](const TensorList& factor) {
      TensorList inputs;
      for (const Tensor& arg : args) inputs.push_back(mul(ag_, arg, factor[0]));
      return loss()(inputs);
    };
    return func::grad(ag_, captured)({one});
  };
  expect_derivative(of_leaves, grads);
}

INSTANTIATE_TEST_SUITE_P(Transforms, EveryOp, ::testing::ValuesIn(testing::transform_cases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace zeroproof
