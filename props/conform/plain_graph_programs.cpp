// Programs whose graph alone decides the order.
#include <array>

#include "model/accumulate_grad.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

constexpr LinearOptions kWeightOnly = {.has_bias = false};
constexpr LeafOptions kHookedWeight = {.has_tensor_hook = true};
constexpr LinearOptions kAllHooked = {.weight = kHookedWeight, .bias = kHookedWeight};
constexpr LeafOptions kFrozen = {.requires_grad = false};

// sq(l2(tanh(l1(x)))): every second program starts like this.
Tensor square_loss(ProgramRun& c, const nn::Linear& l1, const nn::Linear& l2, const Tensor& x) {
  Autograd& ag = c.autograd();
  return sq(ag, l2(ag, tanh(ag, l1(ag, x))));
}

void mlp2(ProgramRun& c) {
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const Tensor loss = square_loss(c, l1, l2, c.input());
  c.dump("output", "loss", loss);
  c.autograd().backward(loss);
}

void mlp3_nobias(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1", kWeightOnly);
  const auto l2 = c.linear("l2", kWeightOnly);
  const auto l3 = c.linear("l3", kWeightOnly);
  ag.backward(sq(ag, l3(ag, relu(ag, l2(ag, relu(ag, l1(ag, c.input())))))));
}

void mlp2_3d(ProgramRun& c) {
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  c.autograd().backward(square_loss(c, l1, l2, c.input()));
}

void tied(ProgramRun& c) {
  const auto l = c.linear("l");
  c.autograd().backward(square_loss(c, l, l, c.input()));
}

struct Heads {
  Tensor trunk;
  nn::Linear la;
  nn::Linear lb;
};

Heads make_heads(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l0 = c.linear("l0");
  Heads heads{{}, c.linear("la"), c.linear("lb")};
  heads.trunk = tanh(ag, l0(ag, c.input()));
  return heads;
}

void branches(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Heads heads = make_heads(c);
  const Tensor a = heads.la(ag, heads.trunk);
  const Tensor b = heads.lb(ag, heads.trunk);
  ag.backward(sum(ag, mul(ag, a, b)));
}

void branches_swapped(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Heads heads = make_heads(c);
  const Tensor b = heads.lb(ag, heads.trunk);
  const Tensor a = heads.la(ag, heads.trunk);
  ag.backward(sum(ag, mul(ag, a, b)));
}

void heap_ties(ProgramRun& c) {
  Autograd& ag = c.autograd();
  TensorList parts;
  for (const char* name : {"p0", "p1", "p2", "p3", "p4", "p5", "p6"})
    parts.push_back(c.leaf_input(name));
  ag.backward(sq(ag, cat(ag, parts)));
}

void unused_param(ProgramRun& c) {
  const auto l1 = c.linear("l1");
  c.linear("l_unused");
  const auto l2 = c.linear("l2");
  c.autograd().backward(square_loss(c, l1, l2, c.input()));
}

void frozen(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1", {.weight = kFrozen});
  const auto l2 = c.linear("l2", {.weight = kFrozen, .bias = kFrozen});
  const auto l3 = c.linear("l3");
  const Tensor h = tanh(ag, l2(ag, tanh(ag, l1(ag, c.input()))));
  ag.backward(sq(ag, l3(ag, h)));
}

void non_scalar(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const Tensor out = l2(ag, tanh(ag, l1(ag, c.input())));
  ag.backward(TensorList{out}, TensorList{c.input("g")});
}

void multi_root(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Heads heads = make_heads(c);
  const Tensor a = sq(ag, heads.la(ag, heads.trunk));
  const Tensor b = sq(ag, heads.lb(ag, heads.trunk));
  ag.backward(TensorList{a, b});
}

void two_losses(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Heads heads = make_heads(c);
  const Tensor a = sq(ag, heads.la(ag, heads.trunk));
  const Tensor b = sq(ag, heads.lb(ag, heads.trunk));
  ag.backward(a, {.retain_graph = true});
  ag.backward(b);
}

void retain_twice_then_error(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l = c.linear("l");
  const Tensor loss = sq(ag, l(ag, c.input()));
  ag.backward(loss, {.retain_graph = true});
  ag.backward(loss, {.retain_graph = true});
  ag.backward(loss);
  c.guarded([&] { ag.backward(loss); });
}

void inputs_pruning(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1", kAllHooked);
  const auto l2 = c.linear("l2", kAllHooked);
  const auto l3 = c.linear("l3", kAllHooked);
  const Tensor h = tanh(ag, l2(ag, tanh(ag, l1(ag, c.input()))));
  ag.backward(sq(ag, l3(ag, h)), {.inputs = {l1.weight}});
}

void autograd_grad(ProgramRun& c) {
  const auto l1 = c.linear("l1", kAllHooked);
  const auto l2 = c.linear("l2", kAllHooked);
  const Tensor loss = square_loss(c, l1, l2, c.input());
  const TensorList grads = c.autograd().grad({loss}, {l1.weight, l2.bias});
  c.dump("output", "g_l1.weight", grads[0]);
  c.dump("output", "g_l2.bias", grads[1]);
}

void detach_nograd(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const auto l3 = c.linear("l3");
  const auto l4 = c.linear("l4");
  const Tensor h = tanh(ag, l1(ag, c.input()));
  const Tensor a = sq(ag, l2(ag, h.detach()));
  const Tensor b = sq(ag, l3(ag, h));
  {
    const GradMode no_grad(ag, false);
    l4(ag, h);
  }
  ag.backward(add(ag, a, b));
}

void create_graph(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1", kWeightOnly);
  const auto l2 = c.linear("l2", kWeightOnly);
  const Tensor loss = square_loss(c, l1, l2, c.input());
  const TensorList grads = ag.grad({loss}, {l1.weight, l2.weight}, {.create_graph = true});
  const Tensor first = add(ag, sq(ag, grads[0]), 0.0);
  ag.backward(add(ag, first, sq(ag, grads[1])));
}

void partial_outputs(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l = c.linear("l");
  ag.backward(sq(ag, unbind(ag, l(ag, c.input()), 1)[0]));
}

void leaf_as_root(ProgramRun& c) {
  c.autograd().backward(c.leaf_input("p", kHookedWeight));
}

void forward_in_two_threads(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Heads heads = make_heads(c);
  for (int i = 0; i < 8; ++i) tanh(ag, heads.trunk);
  const Tensor a = heads.la(ag, heads.trunk);
  const std::int32_t caller = ag.set_thread(ag.add_thread());
  const Tensor b = heads.lb(ag, heads.trunk);
  ag.set_thread(caller);
  ag.backward(sum(ag, mul(ag, a, b)));
}

constexpr std::array kPlainGraphPrograms = {
    ConformProgram{"P01_mlp2", mlp2},
    ConformProgram{"P02_mlp3_nobias", mlp3_nobias},
    ConformProgram{"P03_mlp2_3d", mlp2_3d},
    ConformProgram{"P04_tied", tied},
    ConformProgram{"P05_branches", branches},
    ConformProgram{"P06_branches_swapped", branches_swapped},
    ConformProgram{"P07_heap_ties", heap_ties},
    ConformProgram{"P08_unused_param", unused_param},
    ConformProgram{"P09_frozen", frozen},
    ConformProgram{"P10_non_scalar", non_scalar},
    ConformProgram{"P11_multi_root", multi_root},
    ConformProgram{"P12_two_losses", two_losses},
    ConformProgram{"P13_retain_twice_then_error", retain_twice_then_error},
    ConformProgram{"P14_inputs_pruning", inputs_pruning},
    ConformProgram{"P15_autograd_grad", autograd_grad},
    ConformProgram{"P18_detach_nograd", detach_nograd},
    ConformProgram{"P52_forward_in_two_threads", forward_in_two_threads},
    ConformProgram{"P58_create_graph", create_graph},
    ConformProgram{"P89_partial_outputs", partial_outputs},
    ConformProgram{"P90_leaf_as_root", leaf_as_root},
};

}  // namespace

std::span<const ConformProgram> plain_graph_programs() {
  return kPlainGraphPrograms;
}

}  // namespace zeroproof
