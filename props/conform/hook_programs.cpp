// Programs about hooks on tensors and nodes, and what they may change.
#include <array>

#include "model/multi_grad_hook.h"
#include "props/conform/closeness.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

constexpr LeafOptions kHookedLeaf = {.has_tensor_hook = true};

void leaf_hook_kinds(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor p = c.leaf_input("p", {.is_observed = false});
  const auto marks = [&c](const char* label) {
    return [&c, label](const Tensor&) { c.mark(label); };
  };
  p.register_post_accumulate_grad_hook(marks("postacc_A"));
  const Tensor y = mul(ag, p, 2.0);
  const std::shared_ptr<Node> sink = y.grad_fn()->next_edges()[0].node;
  c.posthook(sink, "acc");
  c.prehook(sink, "acc");
  c.hook(p, "A");
  c.hook(p, "B");
  p.register_post_accumulate_grad_hook(marks("postacc_B"));
  ag.backward(sq(ag, y));
}

void nonleaf_hook_kinds(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor y = mul(ag, x, 2.0);
  y.retain_grad();
  c.posthook(y.grad_fn(), "y");
  c.prehook(y.grad_fn(), "y");
  c.hook(y, "A", [&](const Tensor& grad) { return mul(ag, grad, 3.0); });
  c.hook(y, "B", [&](const Tensor& grad) { return add(ag, grad, 1.0); });
  ag.backward(sq(ag, y));
  const Tensor expected = add(ag, mul(ag, y.detach(), 6.0), 1.0);
  c.mark("y.grad_is_3g+1", is_close(y.grad(), expected));
}

struct Hidden {
  nn::Linear l2;
  Tensor h;
  std::vector<Tensor> seen;
};

Hidden make_hidden(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  Hidden hidden{c.linear("l2"), tanh(ag, l1(ag, c.input())), {}};
  return hidden;
}

void capture_nonleaf(ProgramRun& c) {
  Autograd& ag = c.autograd();
  Hidden hidden = make_hidden(c);
  c.hook(hidden.h, "h", [&](const Tensor& grad) {
    hidden.seen.push_back(grad);
    return Tensor();
  });
  c.prehook(hidden.h.grad_fn(), "h");
  c.posthook(hidden.h.grad_fn(), "h");
  const Tensor grad = ag.grad({sq(ag, hidden.l2(ag, hidden.h))}, {hidden.h})[0];
  c.mark("same", grad.values() == hidden.seen.at(0).values());
}

void backward_inputs_nonleaf(ProgramRun& c) {
  Autograd& ag = c.autograd();
  Hidden hidden = make_hidden(c);
  c.hook(hidden.h, "h", [&](const Tensor& grad) {
    hidden.seen.push_back(grad);
    return mul(ag, grad, 2.0);
  });
  c.prehook(hidden.h.grad_fn(), "h");
  c.posthook(hidden.h.grad_fn(), "h");
  ag.backward(sq(ag, hidden.l2(ag, hidden.h)), {.inputs = {hidden.h}});
  const Tensor doubled = mul(ag, hidden.seen.at(0), 2.0);
  c.mark("h.grad_is_hooked", hidden.h.grad().values() == doubled.values());
}

void retain_before_prehook(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor y = mul(ag, x, 2.0);
  y.retain_grad();
  y.grad_fn()->register_prehook([&](const TensorList& grads) {
    c.mark("y.grad_set_in_prehook", y.grad().is_defined());
    return TensorList{mul(ag, grads[0], 2.0)};
  });
  ag.backward(sq(ag, y));
  c.mark("y.grad_plain", is_close(y.grad(), mul(ag, y.detach(), 2.0)));
  c.mark("x.grad_doubled", is_close(x.grad(), mul(ag, y.detach(), 8.0)));
}

void posthook_replaces_grad_inputs(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor y = mul(ag, x, 2.0);
  c.prehook(y.grad_fn(), "y");
  y.grad_fn()->register_hook([&](const TensorList& grad_inputs, const TensorList&) {
    c.mark("post");
    TensorList replaced = grad_inputs;
    replaced[0] = mul(ag, replaced[0], 10.0);
    return replaced;
  });
  ag.backward(sq(ag, y));
  c.mark("x.grad_x10", is_close(x.grad(), mul(ag, y.detach(), 40.0)));
}

void capture_and_needed(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x", kHookedLeaf);
  const Tensor y = mul(ag, x, 2.0);
  c.hook(y, "y", [&](const Tensor& grad) { return mul(ag, grad, 3.0); });
  const Tensor loss = sq(ag, y);
  const Tensor only = ag.grad({loss}, {y}, {.retain_graph = true})[0];
  c.mark("only_captured_y_x3", is_close(only, mul(ag, y.detach(), 6.0)));
  const TensorList both = ag.grad({loss}, {y, x});
  c.mark("needed_y_plain", is_close(both[0], mul(ag, y.detach(), 2.0)));
  c.mark("needed_x_x3", is_close(both[1], mul(ag, y.detach(), 12.0)));
}

void multi_grad(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const auto unused = c.linear("l_unused");
  const TensorList weights = {l1.weight, l2.weight, unused.weight};
  register_multi_grad_hook(ag, weights,
                           [&](const TensorList&) { c.emit(EventKind::multi_hook, "all"); });
  register_any_grad_hook(ag, weights, [&](const Tensor&) { c.emit(EventKind::multi_hook, "any"); });
  ag.backward(sq(ag, l2(ag, tanh(ag, l1(ag, c.input())))));
}

void multi_grad_with_root(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor y = mul(ag, x, 2.0);
  c.hook(y, "y");
  const Tensor loss = sq(ag, y);
  register_multi_grad_hook(ag, {y, loss}, [&](const TensorList& grads) {
    const auto word = [&](std::size_t i) { return grads[i].is_defined() ? "True" : "False"; };
    c.mark(std::string("got:") + word(0) + "," + word(1));
  });
  ag.backward(loss);
}

constexpr std::array kHookPrograms = {
    ConformProgram{"P16_leaf_hook_kinds", leaf_hook_kinds},
    ConformProgram{"P17_nonleaf_hook_kinds", nonleaf_hook_kinds},
    ConformProgram{"P21_multi_grad", multi_grad},
    ConformProgram{"P78_capture_nonleaf", capture_nonleaf},
    ConformProgram{"P79_backward_inputs_nonleaf", backward_inputs_nonleaf},
    ConformProgram{"P87_retain_before_prehook", retain_before_prehook},
    ConformProgram{"P88_posthook_replaces_grad_inputs", posthook_replaces_grad_inputs},
    ConformProgram{"P91_capture_and_needed", capture_and_needed},
    ConformProgram{"P92_multi_grad_with_root", multi_grad_with_root},
};

}  // namespace

std::span<const ConformProgram> hook_programs() {
  return kHookPrograms;
}

}  // namespace zeroproof
