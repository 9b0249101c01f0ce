// Programs about torch.autograd.graph: callbacks and hooks on the nodes that are made, and about
// gradients that are not there.
#include <array>

#include "model/custom_function.h"
#include "model/node_creation.h"
#include "props/conform/module_watch.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

void nested_queue(ProgramRun& c, const Tensor& h) {
  Autograd& ag = c.autograd();
  const Tensor inner = Tensor::full({2}, 1.0, h.dtype());
  inner.set_requires_grad(true);
  inner.register_hook([&c](const Tensor&) {
    c.queue("inner");
    return Tensor();
  });
  c.queue("outer");
  Tensor loss;
  {
    const GradMode enabled(ag, true);
    loss = sq(ag, inner);
  }
  ag.backward(loss);
  c.mark("inner_done");
}

void queue_callback_public(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const auto queues = [&c](const char* label) {
    return [&c, label](const Tensor&) {
      c.queue(label);
      return Tensor();
    };
  };
  c.guarded([&] { c.queue("outside"); });
  Tensor h = tanh(ag, x);
  h.register_hook([&](const Tensor&) {
    c.queue("a", [&] { c.queue("last"); });
    return Tensor();
  });
  h.grad_fn()->register_hook([&](const TensorList&, const TensorList&) {
    c.queue("b");
    return TensorList{};
  });
  HookHandle handle = x.register_post_accumulate_grad_hook([&](const Tensor&) { c.queue("c"); });
  ag.backward(sq(ag, h));
  handle.remove();

  h = tanh(ag, x);
  h.register_hook([&](const Tensor& grad) {
    nested_queue(c, grad);
    return Tensor();
  });
  ag.backward(sq(ag, h));

  h = tanh(ag, x);
  h.register_hook(queues("lost"));
  h.register_hook([](const Tensor&) -> Tensor { throw ValueError("after a callback was queued"); });
  c.guarded([&] { ag.backward(sq(ag, h)); });
}

// Two outputs, two inputs, and no gradient for any of them.
TensorList without_gradients(Autograd& ag, const Tensor& x, const Tensor& y) {
  const CustomFunction function = {
      .name = "NoGradientsBackward",
      .forward =
          [&ag](FunctionContext& ctx, const TensorList& inputs) {
            ctx.set_materialize_grads(false);
            return TensorList{mul(ag, inputs[0], 1.0), mul(ag, inputs[1], 1.0)};
          },
      .backward = [](FunctionContext&, const TensorList&) { return TensorList(2); }};
  return apply_function(ag, function, {x, y});
}

Tensor sum_of_sums(Autograd& ag, const TensorList& two) {
  const Tensor first = sum(ag, two[0]);
  return add(ag, first, sum(ag, two[1]));
}

void undefined_everywhere(ProgramRun& c) {
  constexpr LeafOptions kHookedOnly = {.has_tensor_hook = true};
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x", kHookedOnly);
  const Tensor y = c.leaf_input("y", kHookedOnly);
  Tensor h = mul(ag, x, 2.0);
  const Tensor k = mul(ag, y, 3.0);
  c.hook(h, "h");
  c.hook(k, "k");
  c.prehook(h.grad_fn(), "h");
  c.posthook(h.grad_fn(), "h");
  h.retain_grad();
  ag.backward(sum_of_sums(ag, without_gradients(ag, h, k)));
  c.mark("h.grad", !h.grad().is_defined());
  ag.backward(sq(ag, mul(ag, x, 2.0)));
  const TensorList two = without_gradients(ag, x, y);
  ag.backward(sum(ag, add(ag, add(ag, two[0], two[1]), y)));
  h = mul(ag, x, 2.0);
  h.grad_fn()->register_hook(
      [](const TensorList& inputs, const TensorList&) { return TensorList(inputs.size()); });
  ag.backward(sq(ag, h));
}

void inputs_as_dict(ProgramRun& c) {
  constexpr LeafOptions kHookedOnly = {.has_tensor_hook = true};
  Autograd& ag = c.autograd();
  const nn::Linear l1 = c.linear("l1", {.weight = kHookedOnly, .bias = kHookedOnly});
  const nn::Linear l2 = c.linear("l2", {.weight = kHookedOnly, .bias = kHookedOnly});
  const Tensor loss = sq(ag, l2(ag, tanh(ag, l1(ag, c.input()))));
  ag.backward(loss, {.inputs = {l1.weight, l2.bias}});
}

void module_hooks_without_grad_inputs(ProgramRun& c) {
  Autograd& ag = c.autograd();
  nn::Linear l1 = c.linear("l1");
  nn::Linear l2 = c.linear("l2");
  watch_backward(c, l1, "l1");
  l2.register_full_backward_pre_hook([&c](const TensorList&) {
    c.mark("l2.pre");
    return TensorList{};
  });
  ag.backward(sq(ag, l2(ag, c.input())));
  ag.backward(sq(ag, l1(ag, c.input())));
}

std::string class_of(const Node& node) {
  const std::string_view name = node.name();
  const std::size_t at = name.rfind(':');
  return std::string(at == std::string_view::npos ? name : name.substr(at + 1));
}

std::function<void(Node&)> marking(ProgramRun& c, const std::string& label = {}) {
  return [&c, label](Node& node) { c.mark("new:" + label + class_of(node)); };
}

// A copy, with a saved tensor.
Tensor fused_copy(Autograd& ag, const Tensor& x) {
  const CustomFunction function = {
      .name = "FusedCopyBackward",
      .forward =
          [&ag](FunctionContext& ctx, const TensorList& inputs) {
            ctx.save_for_backward({inputs[0]});
            return TensorList{mul(ag, inputs[0], 1.0)};
          },
      .backward = [](FunctionContext&, const TensorList& grads) { return TensorList{grads[0]}; }};
  return apply_function(ag, function, {x})[0];
}

Tensor checkpointed(ProgramRun& c, CheckpointKind kind, const Tensor& x) {
  Autograd& ag = c.autograd();
  const CheckpointBody body = [&ag](const TensorList& inputs) {
    return TensorList{sin(ag, exp(ag, inputs[0]))};
  };
  return checkpoint(ag, kind, body, {x})[0];
}

// `loss` and `region` keep the leaf's AccumulateGrad while the next graph is made.
void node_creation_hook(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor w = c.leaf_input("w");
  Tensor loss;
  Tensor region;
  {
    const NodeCreationHook hook(ag, marking(c));
    loss = sum(ag, mul(ag, tanh(ag, mul(ag, x, w)), 3.0));
  }
  ag.backward(loss);
  {
    const NodeCreationHook outer(ag, marking(c, "outer."));
    const NodeCreationHook inner(ag, marking(c, "inner."));
    loss = sum(ag, fused_copy(ag, x));
  }
  ag.backward(loss);
  for (const auto kind : {CheckpointKind::reentrant, CheckpointKind::non_reentrant}) {
    const NodeCreationHook hook(ag, marking(c));
    region = checkpointed(c, kind, x);
    c.mark("backward");
    ag.backward(sum(ag, region));
  }
  loss = sum(ag, sin(ag, x));
  {
    const NodeCreationHook hook(ag, marking(c));
    ag.backward(loss, {.create_graph = true});
  }
  {
    const NodeCreationHook hook(ag, [&c](Node& node) {
      c.prehook(node.shared_from_this(), class_of(node));
      c.posthook(node.shared_from_this(), class_of(node));
    });
    loss = sum(ag, mul(ag, tanh(ag, x), 3.0));
  }
  ag.backward(loss);
  c.guarded([&] {
    const NodeCreationHook hook(ag, [&](Node&) { mul(ag, x, 2.0); });
    tanh(ag, x);
  });
}

constexpr std::array kGraphApiPrograms = {
    ConformProgram{"P102_queue_callback_public", queue_callback_public},
    ConformProgram{"P105_undefined_everywhere", undefined_everywhere},
    ConformProgram{"P106_inputs_as_dict", inputs_as_dict},
    ConformProgram{"P107_module_hooks_without_grad_inputs", module_hooks_without_grad_inputs},
    ConformProgram{"P109_node_creation_hook", node_creation_hook},
};

}  // namespace

std::span<const ConformProgram> graph_api_programs() {
  return kGraphApiPrograms;
}

}  // namespace zeroproof
