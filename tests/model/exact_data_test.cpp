#include "model/baseline/exact_data.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/cpu_ops.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using baseline::ExactData;

DType any_dtype() {
  return *rc::gen::element(DType::float64, DType::float32, DType::bfloat16, DType::float16);
}

std::vector<std::int64_t> any_order(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[*rc::gen::inRange<std::size_t>(0, i)]);
  return order;
}

// The sum in the given order, some of it in groups that are added up first, each rounded.
RC_GTEST_PROP(ExactData, Has_the_same_sum_in_every_order_of_accumulation, ()) {
  const DType dtype = any_dtype();
  const auto count = *rc::gen::inRange<std::int64_t>(1, 90);
  const ExactData data(dtype, count);
  double total = 0.0;
  double group = 0.0;
  for (const std::int64_t c : any_order(count)) {
    group = round_to(dtype, group + data.value(c));
    if (*rc::gen::inRange(0, 3) == 0) total = round_to(dtype, total + std::exchange(group, 0.0));
  }
  RC_ASSERT(round_to(dtype, total + group) == data.sum());
}

RC_GTEST_PROP(ExactData, Says_which_contribution_is_missing, ()) {
  const DType dtype = any_dtype();
  const ExactData data(dtype, 8);
  const auto missing = *rc::gen::inRange<std::int64_t>(0, 8);
  std::vector<bool> expected(8, true);
  expected[static_cast<std::size_t>(missing)] = false;
  RC_ASSERT(data.is_decodable());
  RC_ASSERT(data.decode(data.sum() - data.value(missing)) == expected);
}

// The gradients that the autograd accumulates, whatever the weights and the order.
RC_GTEST_PROP(ExactData, Makes_gradients_that_depend_neither_on_weights_nor_on_order, ()) {
  const CpuOps ops;
  Autograd ag(ops);
  const DType dtype = any_dtype();
  const auto count = *rc::gen::inRange<std::int64_t>(1, 12);
  const ExactData data(dtype, count);
  const std::vector<double> weights = {*rc::gen::inRange(-50, 50) * 0.37, -1.0, 3.25};
  const Tensor p = Tensor::of(weights, {3}, dtype);
  p.set_requires_grad(true);
  for (const std::int64_t c : any_order(count)) ag.backward(data.loss(ag, {p}, c));
  RC_ASSERT(p.grad().values() == std::vector<double>(3, data.sum()));
}

TEST(ExactData, Refuses_more_contributions_than_the_significand_can_sum) {
  EXPECT_NO_THROW(ExactData(DType::bfloat16, 120));
  EXPECT_THROW(ExactData(DType::bfloat16, 200), AutogradError);
}

}  // namespace
}  // namespace zeroproof
