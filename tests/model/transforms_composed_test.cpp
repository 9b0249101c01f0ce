// Transforms inside transforms: numbers of PyTorch's, and random functions under random stacks of
// transforms against differences and slices of what lies one transform below.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/custom_function.h"
#include "tests/model/pick.h"
#include "tests/model/transform_cases.h"

namespace zeroproof {
namespace {

using nlohmann::json;
using testing::central_differences;
using testing::difference;
using testing::pick;

// composed_transforms.json is what composed_transforms.py printed under PyTorch 2.11.0 (CPU).
class ComposedTransforms : public ::testing::Test {
 protected:
  ComposedTransforms() {
    std::ifstream file(ZP_SOURCE_DIR "/tests/model/composed_transforms.json");
    recorded_ = json::parse(file);
    w_ = recorded("w");
    w_.set_requires_grad(true);
    x_ = recorded("x");
    xs_ = recorded("xs");
  }

  Tensor recorded(const std::string& name) const {
    const json& entry = recorded_.at("numbers").at(name);
    return Tensor::of(entry["values"], entry["sizes"]);
  }
  void expect(const std::string& name, const Tensor& actual) {
    EXPECT_EQ(recorded(name).sizes(), actual.sizes()) << name;
    EXPECT_EQ("", difference(recorded(name).values(), actual.values(), 1e-13)) << name;
  }
  // The gradient that a later backward at level 0 gives the captured leaf.
  void expect_captured(const std::string& name, const Tensor& result) {
    expect(name, ag_.grad({sq(ag_, result)}, {w_})[0]);
  }

  func::UnaryFunction vector() {
    return [this](const Tensor& x) {
      const Tensor column = unsqueeze(ag_, sin(ag_, x), 1);
      return mul(ag_, tanh(ag_, squeeze(ag_, mm(ag_, w_, column), 1)), x);
    };
  }
  func::UnaryFunction scalar() {
    return [this, f = vector()](const Tensor& x) { return sq(ag_, f(x)); };
  }
  func::UnaryFunction pushed() {
    return [this, f = vector()](const Tensor& x) {
      return func::jvp(ag_, func::lifted(f), {x}, {mul(ag_, x_, x_)}).tangents[0];
    };
  }

  json recorded_;
  CpuOps ops_;
  Autograd ag_{ops_};
  Tensor w_;
  Tensor x_;
  Tensor xs_;
};

TEST_F(ComposedTransforms, Have_the_first_derivatives_of_PyTorch) {
  expect("grad", func::grad(ag_, scalar())(x_));
  expect("vmap_grad", func::vmap(ag_, func::grad(ag_, scalar()))(xs_));
  expect("jacrev", func::jacrev(ag_, vector())(x_));
  expect("jacfwd", func::jacfwd(ag_, vector())(x_));
  expect("jacrev_vmap", func::jacrev(ag_, func::vmap(ag_, scalar()))(xs_));
  expect("value", func::grad_and_value(ag_, func::lifted(scalar()), {x_}).value);
  const func::UnaryFunction of_map = [&](const Tensor& xs) {
    return sum(ag_, pow(ag_, func::vmap(ag_, scalar())(xs), 3.0));
  };
  expect("grad_vmap", func::grad(ag_, of_map)(xs_));
}

TEST_F(ComposedTransforms, Have_the_higher_derivatives_of_PyTorch) {
  const func::UnaryFunction penalty = [&](const Tensor& x) {
    return sq(ag_, func::grad(ag_, scalar())(x));
  };
  expect("grad_grad", func::grad(ag_, penalty)(x_));
  expect("hessian", func::hessian(ag_, scalar())(x_));
  expect("hessian_vector", func::hessian(ag_, vector())(x_));
  expect("jacrev_jacrev", func::jacrev(ag_, func::jacrev(ag_, vector()))(x_));
  expect("jacfwd_jacfwd", func::jacfwd(ag_, func::jacfwd(ag_, vector()))(x_));
  expect("jacrev_jacfwd", func::jacrev(ag_, func::jacfwd(ag_, vector()))(x_));
  expect("vmap_hessian", func::vmap(ag_, func::hessian(ag_, scalar()))(xs_));
  const Tensor identity = Tensor::of({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3});
  const func::UnaryFunction trace = [&](const Tensor& x) {
    return sum(ag_, mul(ag_, func::hessian(ag_, scalar())(x), identity));
  };
  expect("grad_of_hessian_trace", func::grad(ag_, trace)(x_));
  const func::Function gradient = func::lifted(func::grad(ag_, scalar()));
  expect("jvp_grad", func::jvp(ag_, gradient, {x_}, {mul(ag_, x_, x_)}).tangents[0]);
  expect("vjp_jvp", func::vjp(ag_, func::lifted(pushed()), {x_}).pullback({x_})[0]);
}

TEST_F(ComposedTransforms, Leave_the_graph_of_PyTorch_behind) {
  expect_captured("captured_grad", func::grad(ag_, scalar())(x_));
  expect_captured("captured_vmap_grad", func::vmap(ag_, func::grad(ag_, scalar()))(xs_));
  expect_captured("captured_jacrev", func::jacrev(ag_, vector())(x_));
  expect_captured("captured_hessian", func::hessian(ag_, scalar())(x_));
  expect_captured("captured_jvp", pushed()(x_));
}

// Rule T7: which of the leaves that a transform captured is accumulated first afterwards.
TEST_F(ComposedTransforms, Accumulate_captured_leaves_in_the_order_of_PyTorch) {
  std::string fired;
  const auto leaf = [&fired](const char* name, const Shape& sizes) {
    Tensor made = Tensor::full(sizes, 0.25);
    made.set_requires_grad(true);
    made.register_post_accumulate_grad_hook(
        [&fired, name](const Tensor&) { fired += (fired.empty() ? "" : " ") + std::string(name); });
    return made;
  };
  const Tensor w1 = leaf("w1", {3, 3});
  const Tensor b1 = leaf("b1", {3});
  const Tensor w2 = leaf("w2", {3, 3});
  const Tensor b2 = leaf("b2", {3});
  const func::UnaryFunction v = [&](const Tensor& x) {
    const Tensor h = tanh(ag_, linear(ag_, x, w1, b1));
    return mul(ag_, linear(ag_, h, w2, b2), sin(ag_, h));
  };
  const func::UnaryFunction s = [&](const Tensor& x) { return sq(ag_, v(x)); };
  const auto expect_order = [&](const char* name, const Tensor& result) {
    fired.clear();
    ag_.backward(sq(ag_, result));
    EXPECT_EQ(recorded_.at("orders").at(name).get<std::string>(), fired) << name;
  };
  const func::UnaryFunction of_map = [&](const Tensor& xs) {
    return sum(ag_, func::vmap(ag_, s)(xs));
  };
  const func::UnaryFunction penalty = [&](const Tensor& x) {
    return sq(ag_, func::grad(ag_, s)(x));
  };
  expect_order("grad", func::grad(ag_, s)(x_));
  expect_order("vmap_grad", func::vmap(ag_, func::grad(ag_, s))(xs_));
  expect_order("grad_vmap", func::grad(ag_, of_map)(xs_));
  expect_order("jacrev", func::jacrev(ag_, v)(x_));
  expect_order("jacfwd", func::jacfwd(ag_, v)(x_));
  expect_order("hessian", func::hessian(ag_, s)(x_));
  expect_order("jvp", func::jvp(ag_, func::lifted(v), {x_}, {x_}).tangents[0]);
  expect_order("grad_grad", func::grad(ag_, penalty)(x_));
}

// x^3 with a rule for vmap made of itself.
CustomFunction cube(Autograd& ag) {
  CustomFunction function;
  function.name = "CubeBackward";
  function.generates_vmap_rule = true;
  function.forward_alone = [&ag](const TensorList& in) { return TensorList{pow(ag, in[0], 3.0)}; };
  function.setup_context = [](FunctionContext& context, const TensorList& in, const TensorList&) {
    context.save_for_backward({in[0]});
  };
  function.backward = [&ag](FunctionContext& context, const TensorList& grads) {
    const Tensor square = pow(ag, context.saved_tensors()[0], 2.0);
    return TensorList{mul(ag, grads[0], mul(ag, square, 3.0))};
  };
  return function;
}

// A smooth function of a vector, made of random operations and a captured parameter.
class RandomFunction {
 public:
  RandomFunction(Autograd& ag, bool may_be_custom) : ag_(ag), cube_(cube(ag)) {
    w_.set_requires_grad(pick(0, 2) == 0);
    const int count = pick(1, 6);
    for (int i = 0; i < count; ++i) steps_.push_back(pick(0, may_be_custom ? 12 : 11));
  }

  Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (const int step : steps_) y = next(step, y, x);
    return y;
  }

 private:
  Tensor next(int step, const Tensor& y, const Tensor& x) const {
    const Tensor left = narrow(ag_, y, 0, {0, 1});
    switch (step) {
      case 0:
        return sin(ag_, y);
      case 1:
        return tanh(ag_, y);
      case 2:
        return mul(ag_, y, x);
      case 3:
        return linear(ag_, y, w_, {});
      case 4:
        return cat(ag_, {narrow(ag_, y, 0, {1, 1}), left});
      case 5:
        return mul(ag_, y, sum(ag_, cos(ag_, y)));
      case 6:
        return div(ag_, y, add(ag_, mul(ag_, x, x), 2.0));
      case 7:
        return stack(ag_, {unbind(ag_, y, 0)[1], sum(ag_, mul(ag_, y, w_))}, 0);
      case 8:
        return reshape(ag_, t(ag_, mm(ag_, unsqueeze(ag_, y, 1), unsqueeze(ag_, left, 0))), {2});
      case 9: {
        Tensor copy = add(ag_, y, left);
        mul_in_place(ag_, copy, 0.5);
        return copy;
      }
      case 10:
        return add(ag_, exp(ag_, mul(ag_, tanh(ag_, y), 0.3)), expand(ag_, left, {2}));
      default:
        return apply_function(ag_, cube_, {mul(ag_, tanh(ag_, y), x)})[0];
    }
  }

  Autograd& ag_;
  CustomFunction cube_;
  Tensor w_ = Tensor::of({0.6, -0.4, 0.3, 0.8}, {2, 2});
  std::vector<int> steps_;
};

enum class Kind : std::uint8_t { grad, jacrev, vjp, vmap, jvp, jacfwd };
constexpr int kReverseKinds = 4;

// A function of a vector of two again, one transform further out.
class Transformed {
 public:
  Transformed(Autograd& ag, Kind kind, func::UnaryFunction f)
      : ag_(ag), kind_(kind), f_(std::move(f)) {}

  Tensor operator()(const Tensor& x) const {
    switch (kind_) {
      case Kind::grad:
        return func::grad(ag_, weighted())(x);
      case Kind::jacrev:
        return contracted(func::jacrev(ag_, f_)(x));
      case Kind::jacfwd:
        return contracted(func::jacfwd(ag_, f_)(x));
      case Kind::vjp:
        return func::vjp(ag_, func::lifted(f_), {x}).pullback({weights_})[0];
      case Kind::jvp:
        return func::jvp(ag_, func::lifted(f_), {x}, {weights_}).tangents[0];
      case Kind::vmap:
        break;
    }
    const Tensor rows = stack(ag_, {x, mul(ag_, x, 0.5), add(ag_, x, 0.1)}, 0);
    return sum(ag_, mul(ag_, func::vmap(ag_, f_)(rows), factors_), {0}, KeepDim::no);
  }

  // The same from values of the function one level further in.
  std::vector<double> expected(const Tensor& x) const {
    if (kind_ == Kind::vmap) {
      const Tensor a = f_(x);
      const Tensor b = mul(ag_, f_(mul(ag_, x, 0.5)), 2.0);
      return add(ag_, add(ag_, a, b), mul(ag_, f_(add(ag_, x, 0.1)), -1.0)).values();
    }
    const func::Function f = func::lifted(f_);
    if (kind_ == Kind::jvp) return central_differences(f, {x}, {weights_});
    std::vector<double> result;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto column = central_differences(f, {x}, testing::unit_tangents({x}, 0, i));
      result.push_back(0.7 * column[0] - 0.4 * column[1]);
    }
    return result;
  }

 private:
  func::UnaryFunction weighted() const {
    return [this](const Tensor& x) { return sum(ag_, mul(ag_, f_(x), weights_)); };
  }
  // Rows are outputs.
  Tensor contracted(const Tensor& jacobian) const {
    return squeeze(ag_, mm(ag_, unsqueeze(ag_, weights_, 0), jacobian), 0);
  }

  Autograd& ag_;
  Kind kind_;
  func::UnaryFunction f_;
  Tensor weights_ = Tensor::of({0.7, -0.4}, {2});
  Tensor factors_ = Tensor::of({1.0, 2.0, -1.0}, {3, 1});
};

// By induction: what lies further in than one transform was compared in another case.
RC_GTEST_PROP(RandomTransforms, Are_the_differences_and_slices_of_what_they_transform, ()) {
  const CpuOps ops;
  Autograd ag(ops);
  const bool has_custom = pick(0, 3) == 0;
  func::UnaryFunction f = RandomFunction(ag, has_custom);
  const int depth = pick(1, 4);
  const Tensor x = Tensor::of({0.1 * pick(-9, 10), 0.1 * pick(-9, 10)}, {2});
  for (int level = 1; level <= depth; ++level) {
    const auto kind = static_cast<Kind>(pick(0, has_custom ? kReverseKinds : 6));
    const Transformed transformed(ag, kind, f);
    const GradMode mode(ag, pick(0, 4) != 0);
    if (level == depth)
      RC_ASSERT(difference(transformed.expected(x), transformed(x).values(), 1e-6) == "");
    f = transformed;
  }
}

}  // namespace
}  // namespace zeroproof
