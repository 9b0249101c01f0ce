// The decoder of the performance anchors: its tensors, its numbers, its gradient.
#include "model/nn/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/check.h"
#include "model/cpu_ops.h"
#include "model/functions/activations.h"
#include "model/functions/indexing.h"
#include "model/functions/normalization.h"
#include "tests/model/composed_attention.h"
#include "zeroproof/internal/model/tensor_impl.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/init.h"

namespace zeroproof::nn {
namespace {

Tensor ids(const Shape& sizes, std::int64_t below, std::int64_t step) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < numel(sizes); ++i)
    values.push_back(static_cast<double>((7 + i * step) % below));
  return Tensor::of(values, sizes, DType::float32);
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(Decoder, M267_has_the_tensors_and_values_of_the_definition) {
  const std::vector<ParameterShape> shapes = parameter_shapes(DecoderSizes::m267());
  std::int64_t values = 0;
  for (const ParameterShape& shape : shapes) values += numel(shape.sizes);
  EXPECT_EQ(shapes.size(), 147U);
  EXPECT_EQ(values, 266'912'768);
  EXPECT_EQ(shapes[0].name, "tok_emb.weight");
  EXPECT_EQ(shapes[0].sizes, (Shape{32000, 1024}));
  const std::vector<std::pair<const char*, Shape>> layer = {
      {"attn_norm", {1024}}, {"wqkv", {3072, 1024}}, {"wo", {1024, 1024}},
      {"mlp_norm", {1024}},  {"w1", {2048, 1024}},   {"w2", {1024, 2048}}};
  for (std::size_t i = 0; i < 24 * layer.size(); ++i) {
    const auto& [name, sizes] = layer[i % layer.size()];
    EXPECT_EQ(shapes[1 + i].name,
              "layers." + std::to_string(i / layer.size()) + "." + name + ".weight");
    EXPECT_EQ(shapes[1 + i].sizes, sizes);
  }
  EXPECT_EQ(shapes[145].name, "final_norm.weight");
  EXPECT_EQ(shapes[145].sizes, (Shape{1024}));
  EXPECT_EQ(shapes[146].name, "lm_head.weight");
  EXPECT_EQ(shapes[146].sizes, (Shape{32000, 1024}));
}

TEST(Decoder, Registers_what_its_shapes_say) {
  const DecoderSizes sizes = DecoderSizes::tiny();
  const Decoder decoder(sizes, 1);
  const std::vector<ParameterShape> shapes = parameter_shapes(sizes);
  const std::vector<NamedParameter> named = decoder.named_parameters();
  ASSERT_EQ(named.size(), shapes.size());
  std::int64_t values = 0;
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(named[i].name, shapes[i].name);
    EXPECT_EQ(named[i].tensor.sizes(), shapes[i].sizes);
    EXPECT_EQ(named[i].tensor.dtype(), DType::float32);
    EXPECT_TRUE(named[i].tensor.requires_grad());
    values += numel(shapes[i].sizes);
  }
  EXPECT_EQ(values, 393'856);
  EXPECT_EQ(named.size(), 15U);
}

TEST(Decoder, Begins_with_normal_matrices_and_norms_of_one) {
  const Decoder decoder(DecoderSizes::tiny(), 1);
  std::vector<double> before;
  for (const NamedParameter& named : decoder.named_parameters()) {
    const std::vector<double> values = named.tensor.values();
    if (named.tensor.sizes().size() == 1) {
      EXPECT_EQ(values, std::vector<double>(values.size(), 1.0)) << named.name;
      continue;
    }
    const auto count = static_cast<double>(values.size());
    double squares = 0.0;
    double within = 0.0;
    for (const double value : values) {
      squares += value * value;
      within += std::abs(value) < 0.02 ? 1.0 : 0.0;
    }
    EXPECT_NEAR(sum_of(values) / count, 0.0, 0.02 * 5.0 / std::sqrt(count)) << named.name;
    EXPECT_NEAR(std::sqrt(squares / count), 0.02, 0.02 * 5.0 / std::sqrt(count)) << named.name;
    EXPECT_NEAR(within / count, 0.6827, 5.0 * 0.47 / std::sqrt(count)) << named.name;
    EXPECT_NE(values, before) << named.name;
    before = values;
  }
}

TEST(Decoder, Follows_from_its_seed) {
  const auto head = [](std::uint64_t seed) {
    return Decoder(DecoderSizes::tiny(), seed).named_parameters().back().tensor.values();
  };
  EXPECT_EQ(head(1), head(1));
  EXPECT_NE(head(1), head(2));
}

TEST(Decoder, Makes_values_that_do_not_depend_on_how_many_there_are) {
  const Philox generator{.seed = 3, .offset = 8};
  const std::vector<double> many = normal_parameter(generator, {10}, 1.0).values();
  const std::vector<double> few = normal_parameter(generator, {7}, 1.0).values();
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

TEST(Decoder, Begins_with_the_loss_of_a_guess) {
  const CpuOps ops;
  Autograd ag(ops);
  const Decoder decoder(DecoderSizes::tiny(), 1);
  const TensorList out = decoder(ag, {ids({2, 16}, 512, 37), ids({2, 16}, 512, 91)});
  ASSERT_EQ(out.size(), 1U);
  EXPECT_NEAR(out[0].item(), std::log(512.0), 0.15);
}

TEST(Decoder, Sees_no_later_token) {
  const CpuOps ops;
  Autograd ag(ops);
  const Decoder decoder(DecoderSizes::tiny(), 1);
  const std::vector<double> before = decoder(ag, ids({1, 5}, 512, 37)).values();
  const Tensor changed = ids({1, 5}, 512, 37);
  changed.impl().storage->elements[4] = 500.0;
  const std::vector<double> after = decoder(ag, changed).values();
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 4 * 512, after.begin()));
  EXPECT_NE(before, after);
}

// The definition table of the performance anchors, word by word.
Tensor logits_by_definition(Autograd& ag, const Decoder& decoder, const DecoderSizes& sizes,
                            const Tensor& tokens) {
  TensorList weights;
  for (const NamedParameter& named : decoder.named_parameters()) weights.push_back(named.tensor);
  std::size_t next = 0;
  const auto norm = [&](const Tensor& x) {
    return rms_norm(ag, x, weights.at(next++), {{sizes.width}, 1e-5});
  };
  const auto matrix = [&](const Tensor& x) { return linear(ag, x, weights.at(next++), {}); };
  Indices rows{{}, tokens.sizes()};
  for (const double id : tokens.values()) rows.values.push_back(static_cast<std::int64_t>(id));
  Tensor x = embedding(ag, weights.at(next++), rows);
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    const Tensor qkv = matrix(norm(x));
    x = add(ag, x, matrix(testing::composed_attention(ag, qkv, sizes.heads)));
    x = add(ag, x, matrix(gelu(ag, matrix(norm(x)), GeluForm::tanh)));
  }
  return matrix(norm(x));
}

TEST(Decoder, Is_what_the_definition_says) {
  const CpuOps ops;
  Autograd ag(ops);
  DecoderSizes sizes = DecoderSizes::tiny();
  sizes.vocabulary = 23;
  const Decoder decoder(sizes, 3, DType::float64);
  const Tensor tokens = ids({2, 6}, 23, 5);
  const std::vector<double> expected = logits_by_definition(ag, decoder, sizes, tokens).values();
  const std::vector<double> actual = decoder(ag, tokens).values();
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-12);
}

TEST(Decoder, Refuses_heads_that_are_not_64_wide) {
  DecoderSizes sizes = DecoderSizes::tiny();
  sizes.heads = 4;
  EXPECT_THROW(Decoder(sizes, 1), CheckFailed);
}

TEST(Decoder, Has_the_gradient_of_central_differences) {
  const CpuOps ops;
  Autograd ag(ops);
  DecoderSizes sizes = DecoderSizes::tiny();
  sizes.vocabulary = 11;
  const Decoder decoder(sizes, 5, DType::float64);
  const TensorList inputs = {ids({2, 5}, 11, 3), ids({2, 5}, 11, 5)};
  ag.backward(decoder(ag, inputs)[0]);
  const GradMode disabled(ag, false);
  constexpr double kStep = 1e-4;
  for (const NamedParameter& named : decoder.named_parameters()) {
    const std::vector<double> grad = named.tensor.grad().values();
    const double scale = std::abs(*std::max_element(
        grad.begin(), grad.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
    EXPECT_GT(scale, 0.0) << named.name;
    for (const std::size_t at : {grad.size() / 7, grad.size() / 2, grad.size() - 2}) {
      double& element = named.tensor.impl().storage->elements[at];
      const double before = element;
      element = before + kStep;
      const double above = decoder(ag, inputs)[0].item();
      element = before - kStep;
      const double below = decoder(ag, inputs)[0].item();
      element = before;
      EXPECT_NEAR((above - below) / (2 * kStep), grad[at], 1e-5 * scale) << named.name << " " << at;
    }
  }
}

}  // namespace
}  // namespace zeroproof::nn
