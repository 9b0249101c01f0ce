// Batching rules against one call for each element of the batch, tangents against gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/cpu_ops.h"
#include "model/transforms/layer.h"
#include "tests/model/function_cases.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kBatch = 2;

// Data decides where these look (or they draw), which a batch hides.
const std::set<std::string> kNotBatched = {"topk", "max", "dropout"};

// Element `index` of the batch of input i: the same numbers in other places.
Tensor element_of(const Tensor& x, std::int64_t index) {
  std::vector<double> values = x.values();
  for (double& value : values) value += 0.11 * static_cast<double>(index);
  std::rotate(values.begin(), values.begin() + index % std::ssize(values), values.end());
  return Tensor::of(values, x.sizes());
}

void expect_values_near(const Tensor& expected, const Tensor& actual, const std::string& what) {
  ASSERT_EQ(expected.sizes(), actual.sizes()) << what;
  const std::vector<double> left = expected.values();
  const std::vector<double> right = actual.values();
  for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 1e-12) << what;
}

// The inputs that `mask` has a bit for are batched.
void expect_batch(const FunctionCase& function, std::uint32_t mask) {
  const CpuOps ops;
  Autograd ag(ops);
  const GradMode mode(ag, false);
  const TensorList inputs = inputs_of(function);
  const auto element = [&](std::size_t i, std::int64_t b) {
    return mask & (1U << i) ? element_of(inputs[i], b) : inputs[i];
  };
  TensorList expected;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    TensorList elements;
    for (std::size_t i = 0; i < inputs.size(); ++i) elements.push_back(element(i, b));
    expected.push_back(function.body(ag, elements));
  }
  TensorList batched = inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (mask & (1U << i)) batched[i] = stack(ag, {element(i, 0), element(i, 1)}, 0);
  const TransformLevel level(ag, TransformKind::vmap, kBatch);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (mask & (1U << i)) batched[i] = wrap(level.frame(), batched[i]);
  const Tensor result = unwrap(function.body(ag, batched), level.frame());
  const LowerLayer below(ag);
  expect_values_near(stack(ag, expected, 0), result,
                     function.name + " with mask " + std::to_string(mask));
}

TEST(FunctionTransforms, Compute_a_batch_as_one_element_after_the_other) {
  for (const FunctionCase& function : function_cases()) {
    if (kNotBatched.contains(function.name)) continue;
    const std::uint32_t end = 1U << function.shapes.size();
    for (std::uint32_t mask = 1; mask < end; ++mask) {
      SCOPED_TRACE(function.name);
      EXPECT_NO_THROW(expect_batch(function, mask)) << function.name << " mask " << mask;
    }
  }
}

TEST(FunctionTransforms, Refuse_what_a_batch_hides) {
  for (const FunctionCase& function : function_cases()) {
    if (!kNotBatched.contains(function.name)) continue;
    EXPECT_THROW(expect_batch(function, 1), AutogradError) << function.name;
  }
}

// Forward and reverse mode give the same slope along a direction.
TEST(FunctionTransforms, Have_the_tangents_that_the_gradients_give) {
  const CpuOps ops;
  std::vector<std::string> without;
  for (const FunctionCase& function : function_cases()) {
    if (function.name == "dropout") continue;
    Autograd ag(ops);
    const TensorList inputs = inputs_of(function);
    double expected = 0.0;
    const TensorList grads = ag.grad({weighted_sum(ag, function.body(ag, inputs))}, inputs);
    TensorList directions;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      directions.push_back(element_of(inputs[i].detach(), 1));
      expected += sum(ag, mul(ag, grads[i], directions[i])).item();
    }
    const GradMode mode(ag, false);
    const TransformLevel level(ag, TransformKind::jvp);
    TensorList duals;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      duals.push_back(wrap_with_tangent(level.frame(), inputs[i].detach(), directions[i]));
    try {
      const Tensor loss = weighted_sum(ag, function.body(ag, duals));
      EXPECT_NEAR(expected, loss.wrapper()->tangent.item(), 1e-10) << function.name;
    } catch (const AutogradError&) {
      without.push_back(function.name);
    }
  }
  EXPECT_EQ((std::vector<std::string>{"topk", "max", "layer_norm", "layer_norm_plain",
                                      "layer_norm_two", "index_add", "scatter_add", "where"}),
            without);
}

}  // namespace
}  // namespace zeroproof
