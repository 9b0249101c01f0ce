// Layers: their derivatives by central differences, and what each promises beyond them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/cpu_ops.h"
#include "model/functions/losses.h"
#include "model/nn/language_model.h"
#include "model/nn/sequential.h"
#include "tests/model/function_cases.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::nn {
namespace {

struct LayerCase {
  const char* name;
  std::function<std::shared_ptr<Module>(InitStream&)> make;
  Shape input;
};

constexpr BlockSizes kBlock = {.width = 4, .heads = 2, .hidden = 5};

template <class T, class... Args>
std::shared_ptr<Module> made(Args&&... args) {
  return std::make_shared<T>(std::forward<Args>(args)...);
}

const std::vector<LayerCase>& layer_cases() {
  static const std::vector<LayerCase> kCases = {
      {"linear",
       [](auto& init) {
         return make_linear(init, {4, 3});
       },
       {2, 4}},
      {"layer_norm",
       [](auto& init) {
         return made<LayerNorm>(init.parameter({4}, 1.0), init.parameter({4}, 1.0));
       },
       {2, 4}},
      {"rms_norm", [](auto& init) { return made<RmsNorm>(init.parameter({4}, 1.0)); }, {2, 4}},
      {"mlp",
       [](auto& init) {
         return made<Mlp>(init, MlpSizes{4, 6});
       },
       {2, 4}},
      {"mlp_silu",
       [](auto& init) {
         return made<Mlp>(init, MlpSizes{4, 6, Activation::silu});
       },
       {2, 4}},
      {"attention",
       [](auto& init) {
         return made<SelfAttention>(init, AttentionSizes{4, 2});
       },
       {2, 3, 4}},
      {"causal_attention",
       [](auto& init) {
         return made<SelfAttention>(init, AttentionSizes{4, 2, Causal::yes});
       },
       {2, 3, 4}},
      {"mixture_top1",
       [](auto& init) {
         return made<Mixture>(init, MixtureSizes{{4, 3}, 3, 1});
       },
       {5, 4}},
      {"mixture_top2",
       [](auto& init) {
         return made<Mixture>(init, MixtureSizes{{4, 3}, 3, 2});
       },
       {5, 4}},
      {"block", [](auto& init) { return made<TransformerBlock>(init, kBlock); }, {2, 3, 4}},
      {"sequential",
       [](auto& init) {
         return made<Sequential>(std::vector<std::shared_ptr<Module>>{
             make_linear(init, {4, 3}), made<Mlp>(init, MlpSizes{3, 2, Activation::tanh})});
       },
       {2, 4}},
  };
  return kCases;
}

TensorList distinct_parameters(const Module& module) {
  TensorList parameters;
  for (const NamedParameter& named : module.named_parameters()) {
    const auto is_it = [&](const Tensor& known) { return known.is_same(named.tensor); };
    if (std::ranges::none_of(parameters, is_it)) parameters.push_back(named.tensor);
  }
  return parameters;
}

// Zeros for gradients that did not arrive.
TensorList filled(const TensorList& grads, const TensorList& inputs) {
  TensorList out = grads;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i].is_defined()) out[i] = Tensor::full(inputs[i].sizes(), 0.0);
  return out;
}

TEST(Layers, Have_the_gradients_of_central_differences) {
  const CpuOps ops;
  for (const LayerCase& layer : layer_cases()) {
    Autograd ag(ops);
    InitStream init(7);
    const std::shared_ptr<Module> module = layer.make(init);
    TensorList inputs = {init.parameter(layer.input, 1.0)};
    const Tensor x = inputs[0];
    for (const Tensor& parameter : distinct_parameters(*module)) inputs.push_back(parameter);
    const auto loss = [&] { return weighted_sum(ag, (*module)(ag, x)); };
    const TensorList grads = filled(ag.grad({loss()}, inputs), inputs);
    expect_central_differences(ag, inputs, loss, grads, layer.name);
  }
}

LanguageModelSizes tiny(Head head) {
  return {.vocabulary = 6, .length = 3, .layers = 2, .block = kBlock, .head = head};
}

Tensor tokens() {
  return Tensor::of({1, 4, 0, 5, 5, 2}, {2, 3});
}

Tensor language_loss(Autograd& ag, const Module& model) {
  const Tensor logits = model(ag, tokens());
  return cross_entropy(ag, reshape(ag, logits, {6, 6}), {{4, 0, 5, 5, 2, 1}});
}

TEST(LanguageModel, Has_the_gradients_of_central_differences_with_and_without_tied_weights) {
  const CpuOps ops;
  for (const Head head : {Head::own, Head::tied}) {
    Autograd ag(ops);
    InitStream init(3);
    const LanguageModel model(init, tiny(head));
    const TensorList parameters = distinct_parameters(model);
    const auto loss = [&] { return language_loss(ag, model); };
    expect_central_differences(ag, parameters, loss, ag.grad({loss()}, parameters), "model");
  }
}

TEST(LanguageModel, Ties_the_head_to_the_embedding_as_one_tensor) {
  InitStream init(3);
  const LanguageModel own(init, tiny(Head::own));
  const LanguageModel tied(init, tiny(Head::tied));
  EXPECT_EQ(distinct_parameters(own).size(), distinct_parameters(tied).size() + 1);
}

// What comes later must not change what was before.
TEST(SelfAttention, Looks_at_no_later_position_when_causal) {
  const CpuOps ops;
  Autograd ag(ops);
  InitStream init(5);
  for (const Causal causal : {Causal::no, Causal::yes}) {
    const SelfAttention attention(init, {4, 2, causal});
    const Tensor x = init.parameter({1, 3, 4}, 1.0);
    const Tensor out = attention(ag, x);
    const Tensor first = sum(ag, narrow(ag, out, 1, {0, 1}));
    const std::vector<double> slopes = ag.grad({first}, {x})[0].values();
    const bool is_later_used =
        std::any_of(slopes.begin() + 4, slopes.end(), [](double slope) { return slope != 0.0; });
    EXPECT_EQ(causal == Causal::no, is_later_used);
  }
}

TEST(Mixture, Gives_experts_without_tokens_no_gradient) {
  const CpuOps ops;
  Autograd ag(ops);
  InitStream init(9);
  const Mixture mixture(init, {{4, 3}, 5, 1});
  const Tensor one_token = init.parameter({1, 4}, 1.0);
  ag.backward(sum(ag, mixture(ag, one_token)));
  std::int64_t trained = 0;
  for (const NamedParameter& parameter : mixture.named_parameters())
    if (parameter.name.ends_with("up.weight") && parameter.tensor.grad().is_defined()) ++trained;
  EXPECT_EQ(1, trained);
}

TEST(Layers, Start_from_the_same_values_for_the_same_seed_within_the_bound) {
  InitStream first(1);
  InitStream second(1);
  InitStream other(2);
  const std::vector<double> values = first.kaiming({8, 16}, 16).values();
  EXPECT_EQ(values, second.kaiming({8, 16}, 16).values());
  EXPECT_NE(values, other.kaiming({8, 16}, 16).values());
  const auto [low, high] = std::ranges::minmax(values);
  EXPECT_GE(low, -0.25);
  EXPECT_LT(high, 0.25);
  EXPECT_LT(low, -0.2);
  EXPECT_GT(high, 0.2);
}

TEST(Layers, Refuse_shapes_that_do_not_fit) {
  const CpuOps ops;
  Autograd ag(ops);
  InitStream init(1);
  const SelfAttention attention(init, {4, 2});
  EXPECT_THROW(attention(ag, Tensor::full({3, 4}, 1.0)), AutogradError);
  EXPECT_THROW(SelfAttention(init, {4, 3}), AutogradError);
  const LanguageModel model(init, tiny(Head::own));
  EXPECT_THROW(model(ag, Tensor::full({3}, 1.0)), AutogradError);
  EXPECT_THROW(model(ag, Tensor::full({1, 2}, 9.0)), AutogradError);
}

}  // namespace
}  // namespace zeroproof::nn
