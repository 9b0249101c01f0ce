// What function transforms push, run, refuse and leave open (docs/spec/autograd.md 16).
#include "model/transforms/transforms.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "model/cpu_ops.h"
#include "model/op.h"
#include "model/transforms/layer.h"
#include "model/transforms/restricted_calls.h"
#include "zeroproof/internal/model/node.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

class EventObserver final : public AutogradObserver {
 public:
  std::string events;

 private:
  void on_backward_begin(const BackwardCall& call) override {
    events += call.keeps_graph ? "gt+keep " : "gt+ ";
  }
  void on_backward_end(std::exception_ptr) override { events += "gt- "; }
  void on_transform_push(const TransformFrame& frame) override { add("+", frame); }
  void on_transform_pop(const TransformFrame& frame) override { add("-", frame); }
  void add(const char* sign, const TransformFrame& frame) {
    events += sign + std::string(transform_name(frame.kind)) + std::to_string(frame.level) + " ";
  }
};

class Transforms : public ::testing::Test {
 protected:
  Transforms() { w_.set_requires_grad(true); }

  Tensor cube_sum(const Tensor& x) { return sum(ag_, mul(ag_, pow(ag_, x, 3.0), w_)); }
  func::UnaryFunction f() {
    return [this](const Tensor& x) { return cube_sum(x); };
  }
  // The stack from the top down.
  std::string levels() const {
    std::string words;
    for (auto frame = ag_.local().transforms; frame; frame = frame->below)
      words += std::string(transform_name(frame->kind)) + std::to_string(frame->level);
    return words;
  }
  std::string error_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const AutogradError& error) {
      EXPECT_EQ(nullptr, ag_.local().transforms);
      return error.what();
    }
    return "no error";
  }
  // What `body` throws inside a grad.
  std::string error_inside(const std::function<void(const Tensor&)>& body) {
    return error_of([&] {
      func::grad(ag_, [&](const Tensor& x) {
        body(x);
        return sum(ag_, x);
      })(x_);
    });
  }

  CpuOps ops_;
  EventObserver observer_;
  Autograd ag_{ops_, &observer_};
  Tensor x_ = Tensor::of({0.5, -1.0}, {2});
  Tensor w_ = Tensor::of({2.0, 3.0}, {2});
  Tensor rows_ = Tensor::of({0.5, -1.0, 2.0, 0.25, 1.5, -0.5}, {3, 2});
};

TEST_F(Transforms, Push_levels_and_run_one_graph_task_inside_them) {
  func::grad(ag_, f())(x_);
  EXPECT_EQ("+Grad1 gt+ gt- -Grad1 ", std::exchange(observer_.events, {}));
  func::vmap(ag_, func::grad(ag_, f()))(rows_);
  EXPECT_EQ("+Vmap1 +Grad2 gt+ gt- -Grad2 -Vmap1 ", std::exchange(observer_.events, {}));
  func::jacrev(ag_, f())(x_);
  EXPECT_EQ("+Grad1 -Grad1 +Vmap1 gt+keep gt- -Vmap1 ", std::exchange(observer_.events, {}));
  func::hessian(ag_, f())(x_);
  EXPECT_EQ("+Vmap1 +Jvp2 +Grad3 -Grad3 +Vmap3 gt+keep gt- -Vmap3 -Jvp2 -Vmap1 ",
            std::exchange(observer_.events, {}));
  func::jvp(ag_, func::lifted(f()), {x_}, {x_});
  EXPECT_EQ("+Jvp1 -Jvp1 ", observer_.events);
}

// Rule T6: at the inner levels a captured parameter is a constant.
TEST_F(Transforms, Keep_hooks_of_captured_parameters_silent_until_a_backward_at_level_0) {
  int fired = 0;
  std::string seen;
  w_.register_hook([&](const Tensor&) {
    ++fired;
    seen = levels();
    return Tensor();
  });
  w_.register_post_accumulate_grad_hook([&](const Tensor&) { ++fired; });
  const Tensor g = func::grad(ag_, f())(x_);
  EXPECT_EQ(0, fired);
  EXPECT_FALSE(w_.grad().is_defined());
  ag_.backward(sum(ag_, g));
  EXPECT_EQ(2, fired);
  EXPECT_EQ("", seen);
  EXPECT_DOUBLE_EQ(3 * 0.25, w_.grad().values()[0]);
}

TEST_F(Transforms, Show_hooks_the_stack_of_the_graph_task) {
  std::string seen;
  const func::UnaryFunction hooked = [&](const Tensor& x) {
    const Tensor y = cube_sum(x);
    y.register_hook([&](const Tensor&) {
      seen += levels() + " ";
      return Tensor();
    });
    return y;
  };
  func::grad(ag_, hooked)(x_);
  func::vmap(ag_, func::grad(ag_, hooked))(rows_);
  func::jacrev(ag_, hooked)(x_);
  func::hessian(ag_, hooked)(x_);
  EXPECT_EQ("Grad1 Grad2Vmap1 Vmap1 Vmap3Jvp2Vmap1 ", seen);
}

TEST_F(Transforms, Return_values_and_what_else_the_function_returns) {
  const func::Function with_aux = [&](const TensorList& args) {
    return TensorList{cube_sum(args[1]), mul(ag_, args[0], 2.0)};
  };
  const auto result =
      func::grad_and_value(ag_, with_aux, {w_, x_}, {.argnums = {-1}, .has_aux = true});
  EXPECT_DOUBLE_EQ(2 * 0.125 - 3.0, result.value.item());
  EXPECT_EQ((std::vector<double>{3 * 2 * 0.25, 9.0}), result.grads[0].values());
  EXPECT_EQ((std::vector<double>{4.0, 6.0}), result.aux[0].values());
  EXPECT_EQ(nullptr, result.aux[0].wrapper());
}

TEST_F(Transforms, Give_zeros_where_nothing_depends_on_the_input) {
  const func::UnaryFunction constant = [&](const Tensor&) { return sum(ag_, w_); };
  const std::vector<double> zeros = {0.0, 0.0};
  EXPECT_EQ(zeros, func::grad(ag_, constant)(x_).values());
  EXPECT_EQ(zeros, func::jacrev(ag_, constant)(x_).values());
  EXPECT_EQ(zeros, func::jacfwd(ag_, constant)(x_).values());
  EXPECT_EQ((std::vector<double>{5.0, 5.0}), func::vmap(ag_, constant)(x_).values());
}

TEST_F(Transforms, Pull_back_as_often_as_one_likes_after_the_level_is_gone) {
  const func::Vjp pulled = func::vjp(ag_, func::lifted(f()), {x_});
  EXPECT_EQ(nullptr, pulled.outputs[0].wrapper());
  const Tensor one = Tensor::full({}, 1.0);
  const std::vector<double> expected = {3 * 2 * 0.25, 9.0};
  EXPECT_EQ(expected, pulled.pullback({one})[0].values());
  const Tensor again = pulled.pullback({one})[0];
  EXPECT_EQ(expected, again.values());
  EXPECT_TRUE(again.requires_grad());
  const GradMode off(ag_, false);
  EXPECT_FALSE(pulled.pullback({one})[0].requires_grad());
}

// Rule T2: below a grad, grad mode is what it was at its entry; vmap and jvp leave it alone.
TEST_F(Transforms, Respect_the_grad_mode_in_which_they_were_entered) {
  const func::UnaryFunction enabling = [&](const Tensor& x) {
    const GradMode on(ag_, true);
    return mul(ag_, mul(ag_, x, x), w_);
  };
  const func::UnaryFunction total = [&](const Tensor& x) { return sum(ag_, enabling(x)); };
  const auto pushed = [&] { return func::jvp(ag_, func::lifted(enabling), {x_}, {x_}); };
  EXPECT_TRUE(func::grad(ag_, total)(x_).requires_grad());
  const GradMode off(ag_, false);
  EXPECT_FALSE(func::grad(ag_, total)(x_).requires_grad());
  EXPECT_EQ((std::vector<double>{2.0, -6.0}), func::grad(ag_, total)(x_).values());
  EXPECT_FALSE(func::jacrev(ag_, f())(x_).requires_grad());
  EXPECT_TRUE(func::vmap(ag_, enabling)(rows_).requires_grad());
  EXPECT_TRUE(pushed().outputs[0].requires_grad());
  EXPECT_TRUE(pushed().tangents[0].requires_grad());
}

// Rules N2, T2: one number a level that makes a node, the top level's first. To a level, what it
// only captured is no input.
TEST_F(Transforms, Take_sequence_numbers_from_the_top_level_down) {
  func::grad(ag_, [&](const Tensor& x) {
    const std::uint64_t before = ag_.next_sequence_nr();
    const Tensor captured = mul(ag_, w_, w_);
    EXPECT_FALSE(captured.requires_grad());
    EXPECT_EQ(before + 1, ag_.next_sequence_nr());
    const Tensor product = mul(ag_, x, captured);
    EXPECT_EQ(before + 1, product.grad_fn()->sequence_nr());
    EXPECT_EQ(before + 3, ag_.next_sequence_nr());
    return sum(ag_, product);
  })(x_);
}

TEST_F(Transforms, Treat_what_is_computed_without_grad_mode_as_constant) {
  const func::UnaryFunction half = [&](const Tensor& x) {
    Tensor square;
    {
      const GradMode off(ag_, false);
      square = mul(ag_, x, x);
    }
    return sum(ag_, mul(ag_, x, square));
  };
  EXPECT_EQ((std::vector<double>{0.25, 1.0}), func::grad(ag_, half)(x_).values());
}

TEST_F(Transforms, Refuse_what_PyTorch_refuses) {
  const auto has = [](const std::string& error, const char* words) {
    return error.find(words) != std::string::npos ? "" : error;
  };
  EXPECT_EQ("", has(error_inside([&](const Tensor& x) { retain_grad(ag_, mul(ag_, x, 2.0)); }),
                    "retain_grad"));
  EXPECT_EQ("", has(error_inside([&](const Tensor& x) { mul(ag_, x, 2.0).retain_grad(); }),
                    "retain_grad"));
  EXPECT_EQ("", has(error_inside([&](const Tensor&) { requires_grad_(ag_, Tensor::full({}, 1)); }),
                    "requires_grad_"));
  EXPECT_EQ("", has(error_inside([&](const Tensor&) { ag_.backward(sum(ag_, w_)); }),
                    "inside a functorch transform"));
  EXPECT_EQ("", has(error_inside([&](const Tensor& x) {
                      Tensor written = x;
                      mul_in_place(ag_, written, 2.0);
                    }),
                    "leaf Variable"));
  EXPECT_EQ("", has(error_inside([&](const Tensor&) {
                      Tensor captured = Tensor::full({2}, 1.0);
                      mul_in_place(ag_, captured, 2.0);
                    }),
                    "captured Tensor"));
  EXPECT_EQ("", has(error_inside([&](const Tensor& x) { x.set_data(Tensor::full({2}, 1.0)); }),
                    "mutating directly"));
  EXPECT_EQ("", has(error_of([&] { func::grad(ag_, func::grad(ag_, f()))(x_); }), "1 dims"));
  EXPECT_EQ("", has(error_of([&] {
                      func::vmap(ag_,
                                 [](const Tensor& x) { return Tensor::full({}, x.item()); })(x_);
                    }),
                    "item()"));
}

TEST_F(Transforms, Refuse_arguments_that_do_not_fit) {
  const func::Function two = [&](const TensorList& x) { return TensorList{add(ag_, x[0], x[1])}; };
  const Tensor three = Tensor::full({3}, 1.0);
  const Tensor scalar = Tensor::full({}, 1.0);
  const auto is_refused = [&](const std::function<void()>& body) {
    return error_of(body) != "no error";
  };
  EXPECT_TRUE(is_refused([&] { func::grad(ag_, two, {2})({scalar, scalar}); }));
  EXPECT_TRUE(is_refused([&] { func::grad(ag_, two, {0, -2})({scalar, scalar}); }));
  EXPECT_TRUE(is_refused([&] { func::grad(ag_, two, {})({scalar, scalar}); }));
  EXPECT_TRUE(is_refused([&] { func::vmap(ag_, two)({x_, three}); }));
  EXPECT_TRUE(is_refused([&] { func::vmap(ag_, two)({x_, scalar}); }));
  EXPECT_TRUE(is_refused([&] { func::vmap(ag_, two)({}); }));
  EXPECT_TRUE(is_refused([&] {
    func::vmap(ag_, two, {.in = {std::nullopt, std::nullopt}})({x_, x_});
  }));
  EXPECT_TRUE(is_refused([&] { func::vmap(ag_, two, {.out = {0, 0}})({x_, x_}); }));
  EXPECT_TRUE(is_refused([&] { func::jvp(ag_, two, {x_, x_}, {x_}); }));
  EXPECT_TRUE(is_refused([&] { func::jvp(ag_, two, {x_, x_}, {x_, three}); }));
  const func::Vjp pulled = func::vjp(ag_, two, {x_, x_});
  EXPECT_TRUE(is_refused([&] { pulled.pullback({three}); }));
  EXPECT_TRUE(is_refused([&] { pulled.pullback({x_, x_}); }));
}

// An operation of the future that came without its rules.
TEST_F(Transforms, Say_which_operation_lacks_a_rule) {
  static const Op kBare = {.name = "BareBackward0",
                           .forward = [](const Ops& ops, const TensorList& in, const OpArgs&) {
                             return TensorList{ops.unary(UnaryOp::neg, in[0])};
                           }};
  const func::UnaryFunction bare = [&](const Tensor& x) { return apply_one(ag_, kBare, {x}); };
  EXPECT_NE(std::string::npos, error_of([&] { func::vmap(ag_, bare)(x_); }).find("BareBackward0"));
  EXPECT_NE(std::string::npos, error_of([&] {
                                 func::jvp(ag_, func::lifted(bare), {x_}, {x_});
                               }).find("BareBackward0"));
}

TEST_F(Transforms, Refuse_a_tensor_of_a_level_as_data_of_a_parameter) {
  const Tensor parameter = Tensor::full({2}, 1.0);
  EXPECT_NE("no error",
            error_inside([&](const Tensor& x) { parameter.set_data(mul(ag_, x, 2.0)); }));
  EXPECT_NE("no error",
            error_inside([&](const Tensor&) { parameter.set_data(mul(ag_, parameter, 2.0)); }));
  EXPECT_EQ((std::vector<double>{1.0, 1.0}), parameter.values());
  EXPECT_EQ("no error", error_inside([&](const Tensor&) {
              const NoTransforms outside(ag_);
              parameter.set_data(mul(ag_, parameter, 2.0));
            }));
  EXPECT_EQ((std::vector<double>{2.0, 2.0}), parameter.values());
}

// A dead wrapper is what it stands for.
TEST_F(Transforms, Take_a_leaked_tensor_for_the_one_below) {
  Tensor leaked;
  func::grad(ag_, [&](const Tensor& x) {
    leaked = mul(ag_, x, w_);
    return sum(ag_, leaked);
  })(x_);
  const Tensor parameter = Tensor::full({2}, 1.0);
  parameter.set_data(leaked);
  EXPECT_EQ((std::vector<double>{1.0, -3.0}), parameter.values());
  ag_.backward(sum(ag_, leaked, {0}, KeepDim::no));
  EXPECT_EQ((std::vector<double>{0.5, -1.0}), w_.grad().values());
}

TEST_F(Transforms, Report_a_tensor_of_a_level_that_meets_an_operation_outside_of_it) {
  const std::string error = error_inside([&](const Tensor& x) {
    const NoTransforms outside(ag_);
    mul(ag_, x, 2.0);
  });
  EXPECT_NE(std::string::npos, error.find("outside of its level"));
}

TEST_F(Transforms, Run_a_backward_of_their_own_with_the_stack_emptied) {
  EXPECT_EQ("no error", error_inside([&](const Tensor&) {
              const NoTransforms outside(ag_);
              ag_.backward(sum(ag_, w_));
            }));
  EXPECT_EQ((std::vector<double>{1.0, 1.0}), w_.grad().values());
}

}  // namespace
}  // namespace zeroproof
