// Modules: names, and the order of forward and backward hooks around a call (rule H5).
#include "zeroproof/model/nn/module.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/cpu_ops.h"
#include "model/transforms/transforms.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

Tensor filled_leaf(const std::vector<double>& values, Shape sizes) {
  const Tensor tensor = Tensor::of(values, std::move(sizes));
  tensor.set_requires_grad(true);
  return tensor;
}

std::shared_ptr<nn::Linear> small_linear() {
  return std::make_shared<nn::Linear>(filled_leaf({0.3, -0.2, 0.5, 0.7}, {2, 2}),
                                      filled_leaf({0.1, -0.4}, {2}));
}

// l1, tanh, l2.
class TanhBlock final : public nn::Module {
 public:
  std::shared_ptr<nn::Linear> l1 = register_module("l1", small_linear());
  std::shared_ptr<nn::Linear> l2 = register_module("l2", small_linear());

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {(*l2)(ag, tanh(ag, (*l1)(ag, inputs.at(0))))};
  }
};

// Does what it is given.
class Lambda final : public nn::Module {
 public:
  using Body = std::function<TensorList(Autograd&, const TensorList&)>;
  explicit Lambda(Body body) : body_(std::move(body)) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return body_(ag, inputs);
  }

 private:
  Body body_;
};

using Words = std::vector<std::string>;

struct ModuleTest : ::testing::Test {
  CpuOps ops;
  Autograd ag{ops};
  Words words;
  Tensor x = filled_leaf({1.0, -2.0}, {1, 2});

  void watch(nn::Module& module, const std::string& name) {
    const auto says = [this](const std::string& word) {
      words.push_back(word);
      return TensorList{};
    };
    module.register_forward_pre_hook([=](const auto&) { return says("fpre:" + name); });
    module.register_forward_hook([=](const auto&, const auto&) { return says("fpost:" + name); });
    module.register_full_backward_pre_hook([=](const auto&) { return says("bpre:" + name); });
    module.register_full_backward_hook(
        [=](const auto&, const auto&) { return says("bpost:" + name); });
    for (const auto& [parameter, tensor] : module.named_parameters())
      if (parameter.find('.') == std::string::npos)
        tensor.register_post_accumulate_grad_hook(
            [this, of = "acc:" + name + "." + parameter](const Tensor&) { words.push_back(of); });
  }
};

TEST_F(ModuleTest, Names_are_qualified_and_in_order_of_registration) {
  auto root = Lambda([](Autograd&, const TensorList& inputs) { return inputs; });
  root.register_module("block", std::make_shared<TanhBlock>());
  root.register_parameter("scale", filled_leaf({1.0}, {1}));
  root.register_parameter("none", Tensor());
  Words modules;
  Words parameters;
  for (const auto& module : root.named_modules()) modules.push_back(module.name);
  for (const auto& parameter : root.named_parameters()) parameters.push_back(parameter.name);
  EXPECT_EQ(modules, (Words{"", "block", "block.l1", "block.l2"}));
  EXPECT_EQ(parameters, (Words{"scale", "block.l1.weight", "block.l1.bias", "block.l2.weight",
                               "block.l2.bias"}));
}

TEST_F(ModuleTest, A_shared_module_or_parameter_is_named_once) {
  auto root = Lambda([](Autograd&, const TensorList& inputs) { return inputs; });
  const auto first = root.register_module("first", small_linear());
  root.register_module("again", first);
  root.register_module("tied", std::make_shared<nn::Linear>(first->weight));
  Words modules;
  for (const auto& module : root.named_modules()) modules.push_back(module.name);
  EXPECT_EQ(modules, (Words{"", "first", "tied"}));
  EXPECT_EQ(root.named_parameters().size(), 2U);
}

TEST_F(ModuleTest, Hooks_fire_in_the_recorded_order) {
  TanhBlock block;
  watch(block, "block");
  watch(*block.l1, "l1");
  watch(*block.l2, "l2");
  const Tensor out = block(ag, x);
  EXPECT_EQ(words,
            (Words{"fpre:block", "fpre:l1", "fpost:l1", "fpre:l2", "fpost:l2", "fpost:block"}));
  words.clear();
  ag.backward(sq(ag, out));
  EXPECT_EQ(words, (Words{"bpre:block", "bpre:l2", "acc:l2.bias", "acc:l2.weight", "bpost:l2",
                          "bpre:l1", "acc:l1.bias", "acc:l1.weight", "bpost:l1", "bpost:block"}));
}

TEST_F(ModuleTest, The_full_hook_fires_with_the_pre_hook_when_no_input_needs_a_gradient) {
  const auto l1 = small_linear();
  watch(*l1, "l1");
  ag.backward(sq(ag, (*l1)(ag, x.detach())));
  EXPECT_EQ(words,
            (Words{"fpre:l1", "fpost:l1", "bpre:l1", "bpost:l1", "acc:l1.bias", "acc:l1.weight"}));
}

TEST_F(ModuleTest, Nothing_is_installed_when_grad_mode_is_off) {
  const auto l1 = small_linear();
  watch(*l1, "l1");
  const std::uint64_t before = ag.next_sequence_nr();
  const GradMode no_grad(ag, false);
  EXPECT_FALSE((*l1)(ag, x).requires_grad());
  EXPECT_EQ(ag.next_sequence_nr(), before);
}

TEST_F(ModuleTest, Forward_hooks_replace_what_the_module_takes_and_gives) {
  auto identity = Lambda([](Autograd&, const TensorList& inputs) { return inputs; });
  identity.register_forward_pre_hook(
      [&](const TensorList& in) { return TensorList{mul(ag, in[0], 3.0)}; });
  identity.register_forward_hook([&](const TensorList& in, const TensorList& out) {
    EXPECT_EQ(in[0].values(), (std::vector{3.0, -6.0}));
    return TensorList{add(ag, out[0], 1.0)};
  });
  EXPECT_EQ(identity(ag, x).values(), (std::vector{4.0, -5.0}));
}

TEST_F(ModuleTest, Forward_hooks_run_between_the_identity_nodes) {
  const auto name_of = [](const Tensor& tensor) {
    return tensor.grad_fn() ? std::string(tensor.grad_fn()->name()) : std::string("leaf");
  };
  const auto l1 = small_linear();
  l1->register_full_backward_hook(
      [](const TensorList&, const TensorList&) { return TensorList{}; });
  l1->register_forward_pre_hook([&](const TensorList& in) {
    words.push_back(name_of(in[0]));
    return TensorList{};
  });
  l1->register_forward_hook([&](const TensorList& in, const TensorList& out) {
    words.push_back(name_of(in[0]));
    words.push_back(name_of(out[0]));
    return TensorList{};
  });
  words.push_back(name_of((*l1)(ag, x)));
  EXPECT_EQ(words, (Words{"leaf", "BackwardHookFunctionBackward", "AddmmBackward0",
                          "BackwardHookFunctionBackward"}));
}

TEST_F(ModuleTest, Backward_hooks_replace_gradients_and_later_ones_see_it) {
  auto identity = Lambda([](Autograd&, const TensorList& inputs) { return inputs; });
  identity.register_full_backward_pre_hook(
      [&](const TensorList& grads) { return TensorList{mul(ag, grads[0], 2.0)}; });
  identity.register_full_backward_hook([&](const TensorList& in, const TensorList& out) {
    EXPECT_EQ(in[0].values(), out[0].values());
    return TensorList{mul(ag, in[0], 5.0)};
  });
  TensorList seen;
  identity.register_full_backward_hook([&](const TensorList& in, const TensorList&) {
    seen = in;
    return TensorList{};
  });
  ag.backward(sum(ag, identity(ag, x)));
  EXPECT_EQ(x.grad().values(), (std::vector{10.0, 10.0}));
  EXPECT_EQ(seen.at(0).values(), (std::vector{10.0, 10.0}));
}

TEST_F(ModuleTest, Arguments_without_gradient_or_that_are_no_tensors_show_as_undefined) {
  auto picks = Lambda([](Autograd& autograd, const TensorList& in) {
    return TensorList{mul(autograd, in[0], in[2]), Tensor(), in[2]};
  });
  TensorList grad_inputs;
  TensorList grad_outputs;
  picks.register_full_backward_hook([&](const TensorList& in, const TensorList& out) {
    grad_inputs = in;
    grad_outputs = out;
    return TensorList{};
  });
  const TensorList out = picks(ag, {x, Tensor(), Tensor::of({2.0, 4.0}, {1, 2})});
  EXPECT_FALSE(out[2].requires_grad());
  ag.backward(sum(ag, out[0]));
  ASSERT_EQ(grad_inputs.size(), 3U);
  EXPECT_EQ(grad_inputs[0].values(), (std::vector{2.0, 4.0}));
  EXPECT_FALSE(grad_inputs[1].is_defined() || grad_inputs[2].is_defined());
  ASSERT_EQ(grad_outputs.size(), 3U);
  EXPECT_TRUE(grad_outputs[0].is_defined());
  EXPECT_FALSE(grad_outputs[1].is_defined() || grad_outputs[2].is_defined());
}

TEST_F(ModuleTest, A_wrong_number_of_replaced_gradients_fails_the_backward) {
  const TensorList two = {x.detach(), x.detach()};
  const auto l1 = small_linear();
  HookHandle pre = l1->register_full_backward_pre_hook([&](const TensorList&) { return two; });
  EXPECT_THROW(ag.backward(sq(ag, (*l1)(ag, x))), AutogradError);
  pre.remove();
  l1->register_full_backward_hook([&](const TensorList&, const TensorList&) { return two; });
  EXPECT_THROW(ag.backward(sq(ag, (*l1)(ag, x))), AutogradError);
  EXPECT_THROW(ag.backward(sq(ag, (*l1)(ag, x.detach()))), AutogradError);
}

TEST_F(ModuleTest, Hooks_of_one_call_are_those_that_existed_when_it_began) {
  const auto l1 = small_linear();
  int late = 0;
  l1->register_forward_pre_hook([&](const TensorList&) {
    l1->register_full_backward_pre_hook([&](const TensorList&) {
      ++late;
      return TensorList{};
    });
    return TensorList{};
  });
  ag.backward(sq(ag, (*l1)(ag, x)));
  EXPECT_EQ(late, 0);
  ag.backward(sq(ag, (*l1)(ag, x)));
  EXPECT_EQ(late, 1);
}

// Hooks that only look change no number, in whatever chain of layers they are.
RC_GTEST_PROP(Modules, Keep_their_gradients_under_hooks, ()) {
  const auto is_hooked =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>()));
  const auto needs_grad = *rc::gen::arbitrary<bool>();
  const auto gradients = [&](bool with_hooks) {
    const CpuOps ops;
    Autograd ag(ops);
    Tensor h = Tensor::of({1.0, -2.0}, {1, 2});
    h.set_requires_grad(needs_grad);
    std::vector<std::shared_ptr<nn::Linear>> layers;
    int fired = 0;
    for (const bool hooked : is_hooked) {
      layers.push_back(small_linear());
      if (hooked && with_hooks)
        layers.back()->register_full_backward_hook([&](const TensorList&, const TensorList&) {
          ++fired;
          return TensorList{};
        });
      h = tanh(ag, (*layers.back())(ag, h));
    }
    ag.backward(sq(ag, h));
    const auto expected = with_hooks ? std::count(is_hooked.begin(), is_hooked.end(), true) : 0;
    RC_ASSERT(fired == expected);
    std::vector<std::vector<double>> values;
    for (const auto& layer : layers)
      for (const auto& parameter : layer->named_parameters())
        values.push_back(parameter.tensor.grad().values());
    return values;
  };
  RC_ASSERT(gradients(true) == gradients(false));
}

// Their identity nodes are in the split form: one level's gradients pass through them.
TEST_F(ModuleTest, Backward_hooks_are_no_obstacle_to_function_transforms) {
  TanhBlock block;
  const auto f = [&](const Tensor& at) { return sum(ag, block(ag, at)); };
  const Tensor row = Tensor::of({0.5, -1.0}, {2});
  const Tensor rows = Tensor::of({0.5, -1.0, 2.0, 0.25, -0.5, 1.0}, {3, 2});
  const auto results = [&] {
    const auto gradient = func::grad(ag, func::UnaryFunction(f));
    std::vector<std::vector<double>> values;
    for (const Tensor& result :
         {gradient(row), func::vmap(ag, func::UnaryFunction(f))(rows),
          func::vmap(ag, gradient)(rows), func::jacrev(ag, func::UnaryFunction(f))(row)})
      values.push_back(result.values());
    return values;
  };
  const auto bare = results();
  watch(block, "block");
  EXPECT_EQ(results(), bare);
  EXPECT_EQ(std::ranges::count(words, "bpost:block"), 3) << "of all but vmap alone";
}

}  // namespace
}  // namespace zeroproof
