// Programs about what a leaf keeps: stealing, adding, missing gradients.
#include <array>

#include "model/custom_function.h"
#include "model/optim/adam.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

constexpr LeafOptions kHookedParam = {.has_tensor_hook = true};

void grad_accumulation(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l = c.linear("l");
  const Tensor a = c.input();
  const Tensor b = c.input();
  ag.backward(sq(ag, l(ag, a)));
  const Tensor first = l.weight.grad();
  ag.backward(sq(ag, l(ag, b)));
  c.mark("same_grad_object", l.weight.grad().is_same(first));
  for (const auto& [name, leaf] : c.leaves()) leaf.set_grad({});
  ag.backward(sq(ag, l(ag, a)));
  c.mark("new_after_none", !l.weight.grad().shares_storage_with(first));
}

std::string_view word_of(bool is_stolen) {
  return is_stolen ? "stolen" : "cloned";
}

// Backward of one leaf; says whether the leaf kept the very storage that arrived.
struct StealCase {
  const char* name;
  std::function<Tensor(const Tensor& leaf)> loss;
  bool is_grad_held = false;
  BackwardOptions options = {};
};

void run_steal_case(ProgramRun& c, const StealCase& the_case) {
  const Tensor p = c.leaf_input(the_case.name);
  std::vector<Tensor> held;
  const Storage* arrived = nullptr;
  p.register_hook([&](const Tensor& grad) {
    arrived = grad.storage_id();
    if (the_case.is_grad_held) held.push_back(grad);
    return Tensor();
  });
  c.autograd().backward(the_case.loss(p), the_case.options);
  const bool is_stolen = p.grad().storage_id() == arrived;
  c.mark(std::string(the_case.name) + ":" + std::string(word_of(is_stolen)));
}

void steal_or_clone(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor w = c.input("w");
  const auto weighted = [&](const Tensor& p) { return sum(ag, mul(ag, p, w)); };
  run_steal_case(c, {"plain", weighted});
  run_steal_case(c, {"expanded", [&](const Tensor& p) { return sum(ag, p); }});
  run_steal_case(c, {"held", weighted, true});
  run_steal_case(c, {"create", weighted, false, {.create_graph = true}});
  const Tensor g = c.input("g");
  const Tensor p = c.leaf_input("passed");
  ag.backward(TensorList{p}, TensorList{g});
  c.mark("passed:" + std::string(word_of(p.grad().shares_storage_with(g))));
}

void undefined_grad(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor w = c.leaf_input("w", kHookedParam);
  const CustomFunction none_grad = {
      "NoneGradBackward",
      [&ag](FunctionContext& ctx, const TensorList& inputs) {
        ctx.save_for_backward({inputs[1]});
        return TensorList{mul(ag, inputs[0], inputs[1])};
      },
      [&ag](FunctionContext& ctx, const TensorList& grads) {
        return TensorList{mul(ag, grads[0], ctx.saved_tensors()[0]), Tensor()};
      }};
  const Tensor y = apply_function(ag, none_grad, {x, w})[0];
  const std::shared_ptr<Node> sink = y.grad_fn()->next_edges()[1].node;
  c.posthook(sink, "accw");
  const Tensor loss = sq(ag, y);
  loss.register_hook([&](const Tensor&) {
    c.mark("will_execute_w", ag.will_execute(*sink));
    return Tensor();
  });
  ag.backward(loss);
  c.mark(w.grad().is_defined() ? "w.grad:tensor" : "w.grad:None");
}

void requires_grad_off_late(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor w = c.leaf_input("w", kHookedParam);
  const Tensor loss = sq(ag, mul(ag, w, x));
  w.set_requires_grad(false);
  ag.backward(loss);
  c.mark(w.grad().is_defined() ? "w.grad:tensor" : "w.grad:None");
}

void accumulate_grad_lifetime(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor p = c.leaf_input("p", kHookedParam);
  const auto sink_of = [](const Tensor& y) { return y.grad_fn()->next_edges()[0].node; };
  {
    const Tensor y = mul(ag, p, 2.0);
    const Tensor z = mul(ag, p, 3.0);
    c.mark("shared", sink_of(y) == sink_of(z));
    c.posthook(sink_of(y), "lost");
  }
  ag.backward(sq(ag, mul(ag, p, 2.0)));
  const std::shared_ptr<Node> keep = sink_of(mul(ag, p, 2.0));
  c.posthook(keep, "acc");
  ag.backward(sq(ag, mul(ag, p, 2.0)));
}

void zero_grad_between(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l = c.linear("l", {.has_bias = false});
  const Tensor x = c.input();
  ag.backward(sq(ag, l(ag, x)));
  const Tensor first = l.weight.grad();
  ag.backward(sq(ag, l(ag, x)));
  c.mark("same_object", l.weight.grad().is_same(first));
  l.weight.set_grad({});
  c.mark("none_after_zero", !l.weight.grad().is_defined());
  ag.backward(sq(ag, l(ag, x)));
  c.mark("same_object_again", l.weight.grad().is_same(first));
}

void step_in_backward(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const Tensor x = c.input();
  for (const auto& [name, leaf] : c.leaves()) {
    leaf.register_post_accumulate_grad_hook([&c, &ag, name = name](const Tensor& parameter) {
      const GradMode no_grad(ag, false);
      ag.ops().add_in_place(parameter.detach(), mul(ag, parameter.grad(), -0.1));
      c.dump("grad", name + "@step", parameter.grad());
      parameter.set_grad({});
      c.mark("step:" + name);
    });
  }
  for (int iteration = 0; iteration < 2; ++iteration) {
    ag.backward(sq(ag, l2(ag, tanh(ag, l1(ag, x)))));
    int left = 0;
    for (const auto& [name, leaf] : c.leaves()) left += leaf.grad().is_defined() ? 1 : 0;
    c.mark("grads_left:" + std::to_string(left));
  }
  for (const auto& [name, leaf] : c.leaves()) c.dump("param_final", name, leaf);
}

void adam_two_micro_batches(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l = c.linear("l");
  optim::Adam adam(ag.ops(), {l.weight, l.bias}, {.lr = 0.01, .beta2 = 0.95});
  const TensorList batches = {c.input(), c.input()};
  for (int step = 0; step < 2; ++step) {
    const std::string suffix = "@step" + std::to_string(step);
    for (const Tensor& x : batches) ag.backward(div(ag, sq(ag, tanh(ag, l(ag, x))), 2.0));
    for (const auto& [name, leaf] : c.leaves()) c.dump("grad", name + suffix, leaf.grad());
    adam.step();
    for (std::size_t i = 0; i < c.leaves().size(); ++i) {
      const auto& [name, leaf] = c.leaves()[i];
      c.dump("opt_state", name + suffix + ":exp_avg", adam.state(i).exp_avg);
      c.dump("opt_state", name + suffix + ":exp_avg_sq", adam.state(i).exp_avg_sq);
      c.dump(step == 0 ? "param_step0" : "param_final", name, leaf);
    }
    adam.zero_grad();
    c.mark("step:" + std::to_string(step));
  }
}

constexpr std::array kAccumulationPrograms = {
    ConformProgram{"P53_grad_accumulation", grad_accumulation},
    ConformProgram{"P54_steal_or_clone", steal_or_clone},
    ConformProgram{"P55_undefined_grad", undefined_grad},
    ConformProgram{"P56_requires_grad_off_late", requires_grad_off_late},
    ConformProgram{"P82_accgrad_lifetime", accumulate_grad_lifetime},
    ConformProgram{"P96_zero_grad_between", zero_grad_between},
    ConformProgram{"P97_step_in_backward", step_in_backward},
    ConformProgram{"P98_adam_two_micro_batches", adam_two_micro_batches},
};

}  // namespace

std::span<const ConformProgram> accumulation_programs() {
  return kAccumulationPrograms;
}

}  // namespace zeroproof
