// Programs of function transforms (docs/spec/autograd.md 16).
#include <fmt/format.h>

#include <array>

#include "model/custom_function.h"
#include "model/transforms/restricted_calls.h"
#include "model/transforms/transforms.h"
#include "props/conform/program.h"
#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

constexpr LinearOptions kBiasless = {.has_bias = false};
constexpr LeafOptions kHookedInput = {.has_tensor_hook = true};
constexpr LinearOptions kHookedLinear = {.weight = kHookedInput, .bias = kHookedInput};

// The interpreter stack from the bottom: "Vmap1,Grad2".
std::string stack_of(const Autograd& ag) {
  std::string words;
  for (auto frame = ag.local().transforms; frame; frame = frame->below) {
    const std::string_view gap = words.empty() ? "" : ",";
    words = fmt::format("{}{}{}{}", transform_name(frame->kind), frame->level, gap, words);
  }
  return words;
}

struct TanhPair {
  nn::Linear l1;
  nn::Linear l2;
  Tensor operator()(Autograd& ag, const Tensor& x) const { return l2(ag, tanh(ag, l1(ag, x))); }
};

TanhPair mlp_of(ProgramRun& c, const LinearOptions& options = {}) {
  return {c.linear("l1", options), c.linear("l2", options)};
}

// sq(l2(tanh(l1(x)))) with a hook on the result that writes down the stack.
func::UnaryFunction hooked_loss(ProgramRun& c, const TanhPair& mlp, std::string& seen) {
  return [&c, &mlp, &seen](const Tensor& x) {
    Tensor y = sq(c.autograd(), mlp(c.autograd(), x));
    c.hook(y, "y", [&c, &seen](const Tensor&) {
      seen = stack_of(c.autograd());
      return Tensor();
    });
    return y;
  };
}

void func_grad_closure(ProgramRun& c) {
  const TanhPair mlp = mlp_of(c, kHookedLinear);
  std::string seen;
  const auto grad = func::grad(c.autograd(), hooked_loss(c, mlp, seen));
  c.dump("output", "g", grad(c.input("x")));
  c.mark("hook_saw:" + seen);
}

void func_grad_params(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const TanhPair mlp = mlp_of(c, kHookedLinear);
  const Tensor x = c.input();
  const func::Function loss = [&](const TensorList& p) {
    return TensorList{sq(ag, TanhPair{nn::Linear(p[0], p[1]), nn::Linear(p[2], p[3])}(ag, x))};
  };
  TensorList parameters;
  for (const auto& [name, leaf] : c.leaves()) parameters.push_back(leaf);
  const TensorList grads = func::grad(ag, loss, {0, 1, 2, 3})(parameters);
  bool is_none = true;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    c.dump("output", "g_" + c.leaves()[i].first, grads[i]);
    is_none = is_none && !parameters[i].grad().is_defined();
  }
  c.mark("no_grad_attr", is_none);
}

void vmap_grad(ProgramRun& c) {
  const TanhPair mlp = mlp_of(c);
  std::string seen;
  const auto grad = func::grad(c.autograd(), hooked_loss(c, mlp, seen));
  c.dump("output", "g", func::vmap(c.autograd(), grad)(c.input("xs")));
  c.mark("hook_saw:" + seen);
}

void jacrev(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const TanhPair mlp = mlp_of(c);
  std::string seen;
  const func::UnaryFunction f = [&](const Tensor& x) {
    Tensor y = tanh(ag, mlp(ag, x));
    c.hook(y, "y", [&](const Tensor&) {
      seen = stack_of(ag);
      return Tensor();
    });
    return y;
  };
  c.dump("output", "jac", func::jacrev(ag, f)(c.input("x")));
  c.mark("hook_saw:" + seen);
}

void func_grad_then_backward(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const TanhPair mlp = mlp_of(c, kBiasless);
  const func::UnaryFunction loss = [&](const Tensor& x) { return sq(ag, mlp(ag, x)); };
  ag.backward(sq(ag, func::grad(ag, loss)(c.input("x"))));
}

func::UnaryFunction sine_sum(Autograd& ag, const Tensor& w) {
  return [&ag, w](const Tensor& x) { return sum(ag, sin(ag, mul(ag, x, w))); };
}

void grad_and_value_nested(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor w = c.leaf_input("w", {.is_observed = false});
  const func::UnaryFunction penalty = [&](const Tensor& x) {
    return sq(ag, func::grad(ag, sine_sum(ag, w))(x));
  };
  c.dump("output", "g", func::grad(ag, penalty)(c.input("x")));
}

void hessian(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor w = c.leaf_input("w", {.is_observed = false});
  c.dump("output", "hessian", func::hessian(ag, sine_sum(ag, w))(c.input("x")));
}

// Twice its input, in the three forms of a custom Function.
CustomFunction doubling(Autograd& ag, const std::string& name) {
  CustomFunction function;
  function.name = name;
  function.backward = [&ag](FunctionContext&, const TensorList& grads) {
    return TensorList{mul(ag, grads[0], 2.0)};
  };
  return function;
}

CustomFunction old_style(Autograd& ag) {
  CustomFunction function = doubling(ag, "OldStyleBackward");
  function.forward = [&ag](FunctionContext&, const TensorList& inputs) {
    return TensorList{mul(ag, inputs[0], 2.0)};
  };
  return function;
}

CustomFunction new_style(Autograd& ag, const std::string& name) {
  CustomFunction function = doubling(ag, name);
  function.forward_alone = [&ag](const TensorList& inputs) {
    return TensorList{mul(ag, inputs[0], 2.0)};
  };
  function.setup_context = [](FunctionContext&, const TensorList&, const TensorList&) {};
  return function;
}

std::string outcome_of(const std::function<void()>& body) {
  try {
    body();
    return "ok";
  } catch (const AutogradError&) {
    return "RuntimeError";
  }
}

void custom_function_func(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.input("x");
  const CustomFunction old_one = old_style(ag);
  const CustomFunction new_one = new_style(ag, "NewStyleBackward");
  CustomFunction with_rule = new_style(ag, "NewStyleVmapBackward");
  with_rule.generates_vmap_rule = true;
  const auto applied = [&ag](const CustomFunction& f) -> func::UnaryFunction {
    return [&ag, &f](const Tensor& t) { return apply_function(ag, f, {t})[0]; };
  };
  const auto summed = [&ag](const CustomFunction& f) -> func::UnaryFunction {
    return [&ag, &f](const Tensor& t) { return sum(ag, apply_function(ag, f, {t})[0]); };
  };
  const auto attempt = [&](const std::string& label, const std::function<void()>& body) {
    c.mark(label + ":" + outcome_of(body));
  };
  attempt("old_grad", [&] { func::grad(ag, summed(old_one))(x); });
  attempt("new_grad", [&] { func::grad(ag, summed(new_one))(x); });
  attempt("new_vmap", [&] { func::vmap(ag, applied(new_one))(x); });
  attempt("gen_vmap", [&] { func::vmap(ag, applied(with_rule))(x); });
  attempt("gen_vmap_grad", [&] { func::vmap(ag, func::grad(ag, applied(with_rule)))(x); });
  attempt("old_plain", [&] { applied(old_one)(x); });
}

void func_banned_calls(ProgramRun& c) {
  Autograd& ag = c.autograd();
  std::array<std::string, 3> outcomes;
  const func::UnaryFunction f = [&](const Tensor& x) {
    const Tensor y = mul(ag, x, 2.0);
    outcomes[0] = outcome_of([&] { retain_grad(ag, y); });
    outcomes[1] = outcome_of([&] { requires_grad_(ag, Tensor::full({2}, 1.0)); });
    outcomes[2] = outcome_of([&] { y.register_hook([](const Tensor&) { return Tensor(); }); });
    return sum(ag, y);
  };
  func::grad(ag, f)(c.input("x"));
  c.mark("retain_grad:" + outcomes[0]);
  c.mark("requires_grad_:" + outcomes[1]);
  c.mark("register_hook:" + outcomes[2]);
}

constexpr std::array kTransformPrograms = {
    ConformProgram{"P60_func_grad_closure", func_grad_closure},
    ConformProgram{"P61_func_grad_params", func_grad_params},
    ConformProgram{"P62_vmap_grad", vmap_grad},
    ConformProgram{"P63_jacrev", jacrev},
    ConformProgram{"P64_func_grad_then_backward", func_grad_then_backward},
    ConformProgram{"P65_grad_and_value_nested", grad_and_value_nested},
    ConformProgram{"P66_hessian", hessian},
    ConformProgram{"P67_custom_function_func", custom_function_func},
    ConformProgram{"P68_func_banned_calls", func_banned_calls},
};

}  // namespace

std::span<const ConformProgram> transform_programs() {
  return kTransformPrograms;
}

}  // namespace zeroproof
