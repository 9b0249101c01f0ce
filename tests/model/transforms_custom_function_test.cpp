// Custom autograd.Functions under function transforms (rule T8).
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "model/cpu_ops.h"
#include "model/custom_function.h"
#include "model/op.h"
#include "model/transforms/layer.h"
#include "model/transforms/transforms.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

class NodeObserver final : public AutogradObserver {
 public:
  std::string events;

 private:
  void on_node(const Node& node) override { events += std::string(node.name()) + " "; }
  void on_transform_push(const TransformFrame& frame) override {
    events += "+" + std::string(transform_name(frame.kind)) + std::to_string(frame.level) + " ";
  }
};

class CustomFunctionTransforms : public ::testing::Test {
 protected:
  // a * b * (size of a), a saved and the size kept as an attribute; the forms differ in `edit`.
  CustomFunction scaled_product() {
    CustomFunction function;
    function.name = "ScaledProductBackward";
    function.forward_alone = [this](const TensorList& in) {
      forwards_ += levels() + ";";
      return TensorList{scaled(mul(ag_, in[0], in[1]), in[0].numel())};
    };
    function.setup_context = [](FunctionContext& context, const TensorList& in, const TensorList&) {
      context.save_for_backward({in[0], in[1]});
      context.set("size", in[0].numel());
    };
    function.backward = [this](FunctionContext& context, const TensorList& grads) {
      const TensorList saved = context.saved_tensors();
      const Tensor grad = scaled(grads[0], context.get<std::int64_t>("size"));
      return TensorList{mul(ag_, grad, saved[1]), mul(ag_, grad, saved[0])};
    };
    return function;
  }
  CustomFunction with_generated_rule() {
    CustomFunction function = scaled_product();
    function.generates_vmap_rule = true;
    return function;
  }
  CustomFunction with_own_rule() {
    CustomFunction function = scaled_product();
    function.vmap = [this](const BatchedInputs& in) {
      own_rules_ += 1;
      const std::int64_t size = in.tensors[0].numel() / (in.is_batched[0] ? in.batch_size : 1);
      return TensorList{scaled(mul(ag_, in.tensors[0], in.tensors[1]), size)};
    };
    return function;
  }
  Tensor scaled(const Tensor& x, std::int64_t size) {
    return mul(ag_, x, static_cast<double>(size));
  }
  std::string levels() const {
    std::string words;
    for (auto frame = ag_.local().transforms; frame; frame = frame->below)
      words += std::string(transform_name(frame->kind)) + std::to_string(frame->level);
    return words;
  }

  func::UnaryFunction applied(const CustomFunction& function) {
    return [this, function](const Tensor& x) { return apply_function(ag_, function, {x, w_})[0]; };
  }
  // The same without a Function.
  func::UnaryFunction plain() {
    return [this](const Tensor& x) { return scaled(mul(ag_, x, w_), x.numel()); };
  }
  func::UnaryFunction total(func::UnaryFunction f) {
    return [this, f = std::move(f)](const Tensor& x) { return sq(ag_, f(x)); };
  }
  std::string error_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const AutogradError& error) {
      return error.what();
    }
    return "no error";
  }
  void expect_equal(const Tensor& expected, const Tensor& actual) {
    EXPECT_EQ(expected.sizes(), actual.sizes());
    const auto left = expected.values();
    const auto right = actual.values();
    for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 1e-12);
  }

  CpuOps ops_;
  NodeObserver observer_;
  Autograd ag_{ops_, &observer_};
  Tensor x_ = Tensor::of({0.5, -1.0}, {2});
  Tensor xs_ = Tensor::of({0.5, -1.0, 2.0, 0.25, 1.5, -0.5}, {3, 2});
  Tensor w_ = Tensor::of({2.0, 3.0}, {2});
  std::string forwards_;
  int own_rules_ = 0;
};

TEST_F(CustomFunctionTransforms, Make_a_node_at_every_grad_level_and_run_forward_below_them) {
  w_.set_requires_grad(true);
  const auto penalty = total(func::grad(ag_, total(applied(scaled_product()))));
  const Tensor result = func::grad(ag_, penalty)(x_);
  EXPECT_EQ(";", forwards_);
  expect_equal(func::grad(ag_, total(func::grad(ag_, total(plain()))))(x_), result);
  observer_.events.clear();
  func::grad(ag_, total(applied(scaled_product())))(x_);
  EXPECT_EQ("+Grad1 SumBackward0 PowBackward0 ScaledProductGeneratedBackward ", observer_.events);
  observer_.events.clear();
  const Tensor value = func::vjp(ag_, func::lifted(applied(scaled_product())), {x_}).outputs[0];
  ag_.backward(sum(ag_, value));
  EXPECT_EQ("+Grad1 SumBackward0 ScaledProductBackward torch::autograd::AccumulateGrad ",
            observer_.events);
}

// The top level's node takes its number first (rules N2, T2).
TEST_F(CustomFunctionTransforms, Take_a_number_at_every_level) {
  const std::uint64_t before = ag_.next_sequence_nr();
  std::uint64_t after = 0;
  func::grad(ag_, [&](const Tensor& x) {
    const Tensor y = apply_function(ag_, scaled_product(), {x, w_})[0];
    EXPECT_EQ(before, y.grad_fn()->sequence_nr());
    after = ag_.next_sequence_nr();
    return sum(ag_, y);
  })(x_);
  EXPECT_EQ(before + 2, after);
}

TEST_F(CustomFunctionTransforms, Map_forward_context_and_backward_of_a_generated_rule) {
  const auto function = with_generated_rule();
  expect_equal(func::vmap(ag_, plain())(xs_), func::vmap(ag_, applied(function))(xs_));
  EXPECT_EQ("Vmap1;", forwards_);
  EXPECT_EQ("+Vmap1 +Vmap1 +Vmap1 +Vmap1 ", observer_.events);
  for (const auto& f : {applied(function), applied(with_own_rule())}) {
    const auto gradient = func::grad(ag_, total(f));
    const auto expected = func::grad(ag_, total(plain()));
    expect_equal(func::vmap(ag_, expected)(xs_), func::vmap(ag_, gradient)(xs_));
    expect_equal(func::jacrev(ag_, plain())(x_), func::jacrev(ag_, f)(x_));
    expect_equal(func::jacrev(ag_, func::jacrev(ag_, total(plain())))(x_),
                 func::jacrev(ag_, func::jacrev(ag_, total(f)))(x_));
    const auto of_map = [&](const func::UnaryFunction& g) {
      return func::grad(ag_, total(func::vmap(ag_, g)));
    };
    expect_equal(of_map(plain())(xs_), of_map(f)(xs_));
    expect_equal(func::vmap(ag_, of_map(plain()))(stack(ag_, {xs_, xs_}, 0)),
                 func::vmap(ag_, of_map(f))(stack(ag_, {xs_, xs_}, 0)));
  }
  EXPECT_GT(own_rules_, 0);
}

// A parameter that has no batch gets the sum over it.
TEST_F(CustomFunctionTransforms, Sum_the_gradient_of_an_input_without_batch) {
  const auto loss = [&](const CustomFunction& function) {
    return func::Function([this, function](const TensorList& args) {
      const func::UnaryFunction one = [&](const Tensor& x) {
        return apply_function(ag_, function, {x, args[0]})[0];
      };
      return TensorList{sq(ag_, func::vmap(ag_, one)(xs_))};
    });
  };
  const func::Function expected = [&](const TensorList& args) {
    return TensorList{sq(ag_, scaled(mul(ag_, xs_, args[0]), 2))};
  };
  const Tensor reference = func::grad(ag_, expected)({w_})[0];
  expect_equal(reference, func::grad(ag_, loss(with_generated_rule()))({w_})[0]);
  expect_equal(reference, func::grad(ag_, loss(with_own_rule()))({w_})[0]);
  w_.set_requires_grad(true);
  ag_.backward(loss(with_generated_rule())({w_})[0]);
  expect_equal(reference, w_.grad());
}

TEST_F(CustomFunctionTransforms, Refuse_what_they_have_no_part_for) {
  const auto f = applied(scaled_product());
  EXPECT_NE(std::string::npos,
            error_of([&] { func::vmap(ag_, f)(xs_); }).find("does not have vmap support"));
  EXPECT_NE(std::string::npos, error_of([&] {
                                 func::jvp(ag_, func::lifted(f), {x_}, {x_});
                               }).find("must implement the jvp function"));
  const func::Function constant = [&](const TensorList& args) {
    return TensorList{mul(ag_, args[0], f(w_))};
  };
  EXPECT_EQ("no error", error_of([&] { func::jvp(ag_, constant, {x_}, {x_}); }));
  CustomFunction both = with_own_rule();
  both.generates_vmap_rule = true;
  EXPECT_NE("no error", error_of([&] { func::vmap(ag_, applied(both))(xs_); }));
}

TEST_F(CustomFunctionTransforms, Refuse_the_legacy_form_under_any_transform) {
  CustomFunction legacy;
  legacy.name = "LegacyBackward";
  legacy.forward = [this](FunctionContext&, const TensorList& in) {
    return TensorList{mul(ag_, in[0], 2.0)};
  };
  legacy.backward = [](FunctionContext&, const TensorList& grads) { return grads; };
  const func::UnaryFunction f = [&](const Tensor& x) {
    return sum(ag_, apply_function(ag_, legacy, {x})[0]);
  };
  const auto is_refused = [&](const std::function<void()>& body) {
    return error_of(body).find("setup_context") != std::string::npos;
  };
  EXPECT_TRUE(is_refused([&] { func::grad(ag_, f)(x_); }));
  EXPECT_TRUE(is_refused([&] { func::vmap(ag_, f)(xs_); }));
  EXPECT_TRUE(is_refused([&] { func::jvp(ag_, func::lifted(f), {x_}, {x_}); }));
  EXPECT_FALSE(is_refused([&] { f(x_); }));
}

}  // namespace
}  // namespace zeroproof
