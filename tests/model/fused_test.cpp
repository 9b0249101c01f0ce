// Fused operations: each is what the functions that it stands for compute, and so is its gradient.
#include "model/functions/fused.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/cpu_ops.h"
#include "model/functions/activations.h"
#include "model/functions/indexing.h"
#include "model/functions/losses.h"
#include "model/functions/normalization.h"
#include "tests/model/composed_attention.h"
#include "tests/model/function_cases.h"
#include "tests/model/pick.h"
#include "tests/model/watched_ops.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/init.h"

namespace zeroproof {
namespace {

using testing::pick;

using FusedBody = std::function<TensorList(Autograd&, const TensorList&)>;

// Two ways to the same numbers, and inputs for both.
struct Twins {
  const char* name;
  TensorList inputs;
  FusedBody fused;
  FusedBody composed;
};

Tensor random_input(nn::InitStream& stream, const Shape& sizes, double bound = 1.5) {
  return stream.parameter(sizes, bound);
}

Tensor random_ids(nn::InitStream& stream, std::int64_t count, std::int64_t below) {
  std::vector<double> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(std::floor((stream.uniform(0.5) + 0.5) * static_cast<double>(below)));
  return Tensor::of(ids, {count}, DType::float32);
}

std::vector<std::int64_t> whole_numbers(const Tensor& ids) {
  std::vector<std::int64_t> numbers;
  for (const double id : ids.values()) numbers.push_back(static_cast<std::int64_t>(id));
  return numbers;
}

Twins norm_twins(nn::InitStream& stream, const Shape& sizes) {
  const Shape weight = {sizes.back()};
  return {"add_rms_norm",
          {random_input(stream, sizes), random_input(stream, sizes), random_input(stream, weight)},
          [](Autograd& ag, const TensorList& x) {
            const fused::Normed out = fused::add_rms_norm(ag, x[0], x[1], x[2], 1e-5);
            return TensorList{out.sum, out.y};
          },
          [weight](Autograd& ag, const TensorList& x) {
            const Tensor sum = add(ag, x[0], x[1]);
            return TensorList{sum, rms_norm(ag, sum, x[2], {weight, 1e-5})};
          }};
}

Twins first_norm_twins(nn::InitStream& stream, const Shape& sizes) {
  const Shape weight = {sizes.back()};
  return {"first_add_rms_norm",
          {random_input(stream, sizes), random_input(stream, weight)},
          [](Autograd& ag, const TensorList& x) {
            const fused::Normed out = fused::add_rms_norm(ag, x[0], {}, x[1], 0.1);
            return TensorList{out.sum, out.y};
          },
          [weight](Autograd& ag, const TensorList& x) {
            return TensorList{clone(ag, x[0]), rms_norm(ag, x[0], x[1], {weight, 0.1})};
          }};
}

Twins last_norm_twins(nn::InitStream& stream, const Shape& sizes) {
  Twins twins = norm_twins(stream, sizes);
  const auto keep_y = [](const FusedBody& body) {
    return [body](Autograd& ag, const TensorList& x) { return TensorList{body(ag, x)[1]}; };
  };
  return {"last_add_rms_norm", twins.inputs, keep_y(twins.fused), keep_y(twins.composed)};
}

Twins gelu_twins(nn::InitStream& stream, const Shape& sizes) {
  return {
      "gelu",
      {random_input(stream, sizes, 4.0)},
      [](Autograd& ag, const TensorList& x) { return TensorList{fused::gelu(ag, x[0])}; },
      [](Autograd& ag, const TensorList& x) { return TensorList{gelu(ag, x[0], GeluForm::tanh)}; }};
}

Twins attention_twins(nn::InitStream& stream, const Shape& sizes, std::int64_t heads) {
  const Shape qkv = {sizes[0], sizes[1], 3 * heads * 64};
  return {"causal_attention",
          {random_input(stream, qkv)},
          [heads](Autograd& ag, const TensorList& x) {
            return TensorList{fused::causal_attention(ag, x[0], heads)};
          },
          [heads](Autograd& ag, const TensorList& x) {
            return TensorList{testing::composed_attention(ag, x[0], heads)};
          }};
}

Twins loss_twins(nn::InitStream& stream, std::int64_t rows, std::int64_t classes) {
  const Tensor targets = random_ids(stream, rows, classes);
  return {"cross_entropy",
          {random_input(stream, {rows, classes}, 5.0)},
          [targets](Autograd& ag, const TensorList& x) {
            return TensorList{fused::cross_entropy(ag, x[0], targets)};
          },
          [targets](Autograd& ag, const TensorList& x) {
            return TensorList{cross_entropy(ag, x[0], Classes{whole_numbers(targets)})};
          }};
}

Twins embedding_twins(nn::InitStream& stream, std::int64_t rows, const Shape& table) {
  const Tensor ids = random_ids(stream, rows, table[0]);
  return {"embedding",
          {random_input(stream, table)},
          [ids](Autograd& ag, const TensorList& x) {
            return TensorList{fused::embedding(ag, x[0], ids)};
          },
          [ids, rows](Autograd& ag, const TensorList& x) {
            return TensorList{embedding(ag, x[0], Indices{whole_numbers(ids), {rows}})};
          }};
}

struct TwinSizes {
  std::int64_t batch = 2;
  std::int64_t length = 3;
  std::int64_t heads = 2;
  std::int64_t width = 5;
  std::int64_t classes = 7;
};

std::vector<Twins> all_twins(std::uint64_t seed, const TwinSizes& sizes) {
  nn::InitStream stream(seed);
  const Shape rows = {sizes.batch, sizes.length, sizes.width};
  const std::int64_t count = sizes.batch * sizes.length;
  return {norm_twins(stream, rows),
          first_norm_twins(stream, rows),
          last_norm_twins(stream, rows),
          gelu_twins(stream, rows),
          attention_twins(stream, rows, sizes.heads),
          loss_twins(stream, count, sizes.classes),
          embedding_twins(stream, count, {sizes.classes, sizes.width})};
}

Tensor loss_of(Autograd& ag, const TensorList& outputs) {
  Tensor total;
  for (const Tensor& output : outputs) {
    const Tensor part = weighted_sum(ag, output);
    total = total.is_defined() ? add(ag, total, mul(ag, part, 0.3)) : part;
  }
  return total;
}

// The largest distance, in parts of the largest number or of `least` where that is larger.
double distance(const Tensor& expected, const Tensor& actual, double least = 1e-300) {
  EXPECT_EQ(expected.sizes(), actual.sizes());
  const std::vector<double> a = expected.values();
  const std::vector<double> b = actual.values();
  double most = 0.0;
  double largest = least;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    most = std::max(most, std::isfinite(b[i]) ? std::abs(a[i] - b[i])
                                              : std::numeric_limits<double>::infinity());
  }
  return most / largest;
}

RC_GTEST_PROP(FusedOps, Are_what_the_functions_they_stand_for_compute, ()) {
  const TwinSizes sizes{pick<std::int64_t>(1, 4), pick<std::int64_t>(1, 7),
                        pick<std::int64_t>(1, 4), pick<std::int64_t>(1, 9),
                        pick<std::int64_t>(1, 12)};
  const CpuOps ops;
  Autograd ag(ops);
  for (const Twins& twins : all_twins(pick<std::uint64_t>(0, 1000), sizes)) {
    const TensorList expected = twins.composed(ag, twins.inputs);
    const TensorList actual = twins.fused(ag, twins.inputs);
    RC_ASSERT(expected.size() == actual.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (distance(expected[i], actual[i], 1.0) > 1e-12) RC_FAIL(std::string(twins.name));
    const TensorList slopes = ag.grad({loss_of(ag, expected)}, twins.inputs);
    const TensorList grads = ag.grad({loss_of(ag, actual)}, twins.inputs);
    for (std::size_t i = 0; i < slopes.size(); ++i)
      if (distance(slopes[i], grads[i], 1.0) > 1e-12)
        RC_FAIL(std::string(twins.name) + ": gradient of input " + std::to_string(i));
  }
}

TEST(FusedOps, Have_the_gradients_of_central_differences) {
  const CpuOps ops;
  for (const Twins& twins : all_twins(3, {.batch = 1, .length = 3, .heads = 1})) {
    Autograd ag(ops);
    const auto loss = [&] { return loss_of(ag, twins.fused(ag, twins.inputs)); };
    expect_central_differences(ag, twins.inputs, loss, ag.grad({loss()}, twins.inputs), twins.name);
  }
}

// What one rounding to bfloat16 can do to a number, in parts of it. Results are rounded once, but
// the norm reads a rounded sum, and attention rounded q and k.
constexpr double kRoundoff = 0x1p-8;

TEST(FusedOps, Round_bfloat16_once_a_result) {
  const CpuOps ops;
  Autograd ag(ops);
  for (const Twins& wide : all_twins(5, {.batch = 2, .length = 5, .heads = 2, .width = 40})) {
    TensorList exact;
    TensorList narrow_inputs;
    for (const Tensor& input : wide.inputs) {
      narrow_inputs.push_back(ops.cast(input, DType::bfloat16));
      exact.push_back(ops.cast(narrow_inputs.back(), DType::float64));
      narrow_inputs.back().set_requires_grad(true);
      exact.back().set_requires_grad(true);
    }
    const bool is_attention = std::string(wide.name) == "causal_attention";
    const double bound = (is_attention ? 6.0 : 3.0) * kRoundoff;
    const TensorList expected = wide.composed(ag, exact);
    const TensorList actual = wide.fused(ag, narrow_inputs);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_LE(distance(expected[i], actual[i]), bound) << wide.name << " output " << i;
    const TensorList slopes = ag.grad({loss_of(ag, expected)}, exact);
    const TensorList grads = ag.grad({loss_of(ag, actual)}, narrow_inputs);
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      EXPECT_EQ(grads[i].dtype(), DType::bfloat16) << wide.name;
      EXPECT_LE(distance(slopes[i], grads[i]), 2.0 * bound) << wide.name << " input " << i;
    }
  }
}

TEST(FusedOps, Keep_their_statistics_in_float32_and_the_loss_too) {
  const CpuFusedOps ops;
  const Tensor x = Tensor::full({2, 64}, 0.5, DType::bfloat16);
  const Tensor weight = Tensor::full({64}, 1.0, DType::bfloat16);
  EXPECT_EQ(ops.add_rms_norm(x, x, weight, 1e-5).inverse_rms.dtype(), DType::float32);
  const Tensor qkv = Tensor::full({1, 2, 192}, 0.5, DType::bfloat16);
  EXPECT_EQ(ops.causal_attention(qkv, 1).log_sum_exp.dtype(), DType::float32);
  const Tensor targets = Tensor::of({1, 63}, {2}, DType::float32);
  const CrossEntropyOutputs out = ops.cross_entropy(x, targets);
  EXPECT_EQ(out.loss.dtype(), DType::float32);
  EXPECT_EQ(out.loss.item(), round_to(DType::float32, std::log(64.0)));
  EXPECT_EQ(out.grad_logits.dtype(), DType::bfloat16);
}

TEST(FusedOps, Attend_to_no_later_position) {
  const CpuFusedOps ops;
  nn::InitStream stream(1);
  const Tensor qkv = stream.parameter({1, 4, 192}, 1.0);
  const std::vector<double> before = ops.causal_attention(qkv, 1).out.values();
  for (std::size_t i = 3 * 192; i < 4 * 192; ++i) qkv.impl().storage->elements[i] += 1.0;
  const std::vector<double> after = ops.causal_attention(qkv, 1).out.values();
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 3 * 64, after.begin()));
  EXPECT_FALSE(std::equal(before.begin() + 3 * 64, before.end(), after.begin() + 3 * 64));
}

TEST(FusedOps, Scale_the_gradient_of_the_loss_and_keep_it_for_a_second_backward) {
  const CpuOps ops;
  Autograd ag(ops);
  nn::InitStream stream(2);
  const Tensor logits = stream.parameter({3, 4}, 2.0);
  const Tensor loss = fused::cross_entropy(ag, logits, random_ids(stream, 3, 4));
  const Tensor three = mul(ag, loss, 3.0);
  const Tensor once = ag.grad({loss}, {logits}, {.retain_graph = true})[0];
  const Tensor thrice = ag.grad({three}, {logits}, {.retain_graph = true})[0];
  EXPECT_LE(distance(ops.binary(BinaryOp::mul, once, Tensor::number(3.0, DType::float64)), thrice),
            1e-15);
  EXPECT_EQ(ag.grad({loss}, {logits})[0].values(), once.values());
}

TEST(FusedOps, Give_a_stream_that_nothing_was_normalized_of_its_gradient) {
  const CpuOps ops;
  Autograd ag(ops);
  nn::InitStream stream(4);
  const Tensor x = stream.parameter({2, 3}, 1.0);
  const Tensor residual = stream.parameter({2, 3}, 1.0);
  const Tensor weight = stream.parameter({3}, 1.0);
  const fused::Normed out = fused::add_rms_norm(ag, x, residual, weight, 1e-5);
  const TensorList grads = ag.grad({sum(ag, out.sum)}, {x, residual, weight});
  EXPECT_EQ(grads[0].values(), std::vector<double>(6, 1.0));
  EXPECT_EQ(grads[1].values(), std::vector<double>(6, 1.0));
  EXPECT_FALSE(grads[2].is_defined());
}

TEST(FusedOps, Are_differentiable_once) {
  const CpuOps ops;
  for (const Twins& twins : all_twins(3, {})) {
    Autograd ag(ops);
    const Tensor loss = loss_of(ag, twins.fused(ag, twins.inputs));
    const Tensor grad = ag.grad({loss}, {twins.inputs[0]}, {.create_graph = true})[0];
    const bool is_linear = std::string(twins.name) == "embedding";
    EXPECT_EQ(grad.requires_grad(), !is_linear) << twins.name;
    if (is_linear) continue;
    try {
      ag.grad({weighted_sum(ag, grad)}, {twins.inputs[0]});
      ADD_FAILURE() << twins.name;
    } catch (const AutogradError& error) {
      EXPECT_NE(std::string(error.what()).find("differentiable once"), std::string::npos)
          << error.what();
    }
  }
}

// A stand-in for a kernel: it reads rows that lie one after the other, also those of a view.
class KernelLike final : public FusedOps {
 public:
  RmsNormOutputs add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight,
                              double eps) const override {
    return check({x, residual, weight}), cpu_.add_rms_norm(x, residual, weight, eps);
  }
  RmsNormGrads add_rms_norm_backward(const Tensor& grad_y, const Tensor& grad_sum,
                                     const RmsNormSaved& saved) const override {
    check({grad_y, grad_sum, saved.sum, saved.weight, saved.inverse_rms});
    return cpu_.add_rms_norm_backward(grad_y, grad_sum, saved);
  }
  Tensor gelu(const Tensor& x) const override { return check({x}), cpu_.gelu(x); }
  Tensor gelu_backward(const Tensor& grad, const Tensor& x) const override {
    return check({grad, x}), cpu_.gelu_backward(grad, x);
  }
  AttentionOutputs causal_attention(const Tensor& qkv, std::int64_t heads) const override {
    return check({qkv}), cpu_.causal_attention(qkv, heads);
  }
  Tensor causal_attention_backward(const Tensor& grad_out, const AttentionOutputs& saved,
                                   std::int64_t heads) const override {
    check({grad_out, saved.out, saved.rotated, saved.log_sum_exp});
    return cpu_.causal_attention_backward(grad_out, saved, heads);
  }
  CrossEntropyOutputs cross_entropy(const Tensor& logits, const Tensor& targets) const override {
    return check({logits, targets}), cpu_.cross_entropy(logits, targets);
  }
  Tensor cross_entropy_backward(const Tensor& grad_loss, const Tensor& grad_logits) const override {
    return check({grad_logits}), cpu_.cross_entropy_backward(grad_loss, grad_logits);
  }
  Tensor embedding(const Tensor& table, const Tensor& ids) const override {
    return check({table, ids}), cpu_.embedding(table, ids);
  }
  Tensor embedding_backward(const Tensor& grad, const Tensor& ids,
                            std::int64_t rows) const override {
    return check({grad, ids}), cpu_.embedding_backward(grad, ids, rows);
  }

 private:
  static void check(const TensorList& inputs) {
    for (const Tensor& input : inputs) EXPECT_TRUE(!input.is_defined() || input.is_contiguous());
  }

  CpuFusedOps cpu_;
};

class KernelOps final : public testing::WatchedOps {
 public:
  const FusedOps& fused() const override { return fused_; }

 private:
  void on_call(Kind) const override {}

  KernelLike fused_;
};

// The same elements in the memory of a matrix whose columns lie one after the other.
Tensor column_major(Autograd& ag, const Tensor& x) {
  const std::int64_t width = x.sizes().back();
  const Tensor rows = view(ag, x, {x.numel() / width, width});
  return t(ag, clone(ag, t(ag, rows)));
}

TEST(FusedOps, Get_rows_that_lie_behind_each_other) {
  const KernelOps ops;
  Autograd ag(ops);
  nn::InitStream stream(6);
  const Tensor x = column_major(ag, stream.parameter({3, 4}, 1.0));
  ASSERT_FALSE(x.is_contiguous());
  const Tensor weight = squeeze(ag, narrow(ag, stream.parameter({4, 2}, 1.0), 1, {0, 1}), 1);
  const fused::Normed normed = fused::add_rms_norm(ag, x, x, weight, 1e-5);
  const Tensor both = add(ag, fused::gelu(ag, normed.sum), fused::gelu(ag, normed.y));
  ag.backward(sum(ag, mul(ag, t(ag, both), Tensor::full({4, 3}, 2.0))));
  ag.backward(sum(ag, fused::gelu(ag, x)));
  ag.backward(fused::cross_entropy(ag, x, random_ids(stream, 3, 4)));
  const Tensor ids = Tensor::of({1, 9, 0, 9, 3, 9}, {3, 2}, DType::float32);
  const Tensor rows = fused::embedding(ag, column_major(ag, stream.parameter({5, 4}, 1.0)),
                                       squeeze(ag, narrow(ag, ids, 1, {0, 1}), 1));
  ag.backward(sum(ag, t(ag, rows)));
  const Tensor qkv = transpose(ag, stream.parameter({2, 3, 192}, 1.0), 0, 1);
  ag.backward(sum(ag, fused::causal_attention(ag, qkv, 1)));
}

TEST(FusedOps, Refuse_what_does_not_fit) {
  const CpuFusedOps ops;
  const Tensor x = Tensor::full({2, 4}, 1.0);
  const Tensor ids = Tensor::of({0, 4}, {2}, DType::float32);
  EXPECT_THROW(ops.add_rms_norm(x, {}, Tensor::full({3}, 1.0), 0.0), AutogradError);
  EXPECT_THROW(ops.add_rms_norm(x, Tensor::full({2, 3}, 1.0), Tensor::full({4}, 1.0), 0.0),
               AutogradError);
  EXPECT_THROW(ops.causal_attention(Tensor::full({1, 2, 200}, 1.0), 1), AutogradError);
  EXPECT_THROW(ops.cross_entropy(x, ids), AutogradError);
  EXPECT_THROW(ops.cross_entropy(x, Tensor::of({0.5, 1}, {2})), AutogradError);
  EXPECT_THROW(ops.embedding(Tensor::full({4, 2}, 1.0), ids), AutogradError);
}

}  // namespace
}  // namespace zeroproof
