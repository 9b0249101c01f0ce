// Programs about activation checkpointing, both variants and nested.
#include <array>
#include <set>

#include "model/accumulate_grad.h"
#include "props/conform/module_watch.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

constexpr auto kReentrant = CheckpointKind::reentrant;
constexpr auto kNonReentrant = CheckpointKind::non_reentrant;

// Each variant with the letter of its label.
constexpr std::array kVariants = {std::pair("R", kReentrant), std::pair("N", kNonReentrant)};

struct TwoLayers {
  nn::Linear l1;
  nn::Linear l2;
};

TwoLayers two_layers(ProgramRun& c) {
  return {c.linear("l1"), c.linear("l2")};
}

// tanh o layer as the body of a checkpoint "label".
Tensor ckpt_tanh(ProgramRun& c, const char* label, CheckpointKind kind, const nn::Linear& layer,
                 const Tensor& x) {
  Autograd& ag = c.autograd();
  return c.ckpt(
      label, kind, [&](const Tensor& t) { return tanh(ag, layer(ag, t)); }, x);
}

TwoLayers watched_layers(ProgramRun& c) {
  TwoLayers layers = two_layers(c);
  watch_forward(c, layers.l1, "l1");
  watch_forward(c, layers.l2, "l2");
  return layers;
}

void one_region(ProgramRun& c, CheckpointKind kind) {
  Autograd& ag = c.autograd();
  const TwoLayers m = watched_layers(c);
  ag.backward(sq(ag, m.l2(ag, ckpt_tanh(c, "c", kind, m.l1, c.leaf_input("x")))));
}

void reentrant(ProgramRun& c) {
  one_region(c, kReentrant);
}
void nonreentrant(ProgramRun& c) {
  one_region(c, kNonReentrant);
}

Tensor ckpt_both_layers(ProgramRun& c, const TwoLayers& m) {
  Autograd& ag = c.autograd();
  const auto body = [&](const Tensor& t) { return m.l2(ag, tanh(ag, m.l1(ag, t))); };
  return c.ckpt("c", kNonReentrant, body, c.input());
}

void nonreentrant_tail(ProgramRun& c) {
  const TwoLayers m = watched_layers(c);
  c.autograd().backward(sq(c.autograd(), ckpt_both_layers(c, m)));
}

void no_early_stop(ProgramRun& c) {
  const TwoLayers m = watched_layers(c);
  Tensor y;
  {
    const CheckpointEarlyStop off(c.autograd(), false);
    y = ckpt_both_layers(c, m);
  }
  c.autograd().backward(sq(c.autograd(), y));
}

void nested(ProgramRun& c, CheckpointKind kind) {
  Autograd& ag = c.autograd();
  const TwoLayers m = watched_layers(c);
  const auto outer = [&](const Tensor& t) {
    return tanh(ag, m.l2(ag, ckpt_tanh(c, "i", kind, m.l1, t)));
  };
  ag.backward(sq(ag, c.ckpt("o", kind, outer, c.leaf_input("x"))));
}

void nested_reentrant(ProgramRun& c) {
  nested(c, kReentrant);
}
void nested_nonreentrant(ProgramRun& c) {
  nested(c, kNonReentrant);
}

void nonreentrant_retain(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const TwoLayers m = two_layers(c);
  const Tensor loss = sq(ag, m.l2(ag, ckpt_tanh(c, "c", kNonReentrant, m.l1, c.input())));
  ag.backward(loss, {.retain_graph = true});
  ag.backward(loss);
}

void reentrant_inputs_error(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const TwoLayers m = two_layers(c);
  const Tensor x = c.leaf_input("x");
  const Tensor loss = sq(ag, m.l2(ag, ckpt_tanh(c, "c", kReentrant, m.l1, x)));
  c.guarded([&] { ag.backward(loss, {.retain_graph = true, .inputs = {m.l2.bias, x}}); });
  ag.grad({loss}, {m.l2.weight});
}

void tied(ProgramRun& c, CheckpointKind kind) {
  Autograd& ag = c.autograd();
  const nn::Linear l = c.linear("l");
  const Tensor h = ckpt_tanh(c, "A", kind, l, c.leaf_input("x"));
  ag.backward(sq(ag, ckpt_tanh(c, "B", kind, l, h)));
}

void reentrant_tied(ProgramRun& c) {
  tied(c, kReentrant);
}
void nonreentrant_tied(ProgramRun& c) {
  tied(c, kNonReentrant);
}

void reentrant_tied_outside(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const nn::Linear l = c.linear("l");
  ag.backward(sq(ag, l(ag, ckpt_tanh(c, "A", kReentrant, l, c.leaf_input("x")))));
}

void reentrant_nograd_input(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const TwoLayers m = two_layers(c);
  ag.backward(sq(ag, m.l2(ag, ckpt_tanh(c, "c", kReentrant, m.l1, c.input()))));
}

void frozen_inside(ProgramRun& c) {
  constexpr LeafOptions kFrozen = {.requires_grad = false};
  Autograd& ag = c.autograd();
  const nn::Linear l1 = c.linear("l1", {.weight = kFrozen, .bias = kFrozen});
  const nn::Linear l2 = c.linear("l2");
  const nn::Linear l3 = c.linear("l3");
  const Tensor x = c.leaf_input("x");
  for (const auto& [label, kind] : kVariants) {
    const auto body = [&](const Tensor& t) { return l2(ag, tanh(ag, l1(ag, t))); };
    ag.backward(sq(ag, l3(ag, c.ckpt(label, kind, body, x))));
  }
}

std::vector<bool> zeros_of(const Tensor& tensor) {
  std::vector<bool> is_zero;
  for (const double value : tensor.values()) is_zero.push_back(value == 0.0);
  return is_zero;
}

void rng(ProgramRun& c) {
  Autograd& ag = c.autograd();
  Rng& rng = ag.global().rng;
  const nn::Linear l1 = c.linear("l1");
  const Tensor x = c.leaf_input("x");
  // They were drawn from the program's seed, one float64 an element; what follows they left over.
  rng.manual_seed(c.seed());
  for (const auto& [name, leaf] : c.leaves())
    rng.uniforms(Device::cpu(), static_cast<std::size_t>(leaf.numel()));
  for (const auto& [label, kind] : kVariants) {
    std::vector<std::vector<bool>> seen;
    const auto body = [&](const Tensor& t) {
      const Tensor h = dropout(ag, l1(ag, t), 0.5);
      seen.push_back(zeros_of(h));
      return tanh(ag, h);
    };
    const Tensor y = c.ckpt(label, kind, body, x);
    rng.uniforms(Device::cpu(), 3, DType::float32);
    const RngState before = rng.state(Device::cpu());
    ag.backward(sq(ag, y));
    c.mark(std::string(label) + ":mask_equal", seen.at(0) == seen.at(1));
    c.mark(std::string(label) + ":rng_restored", rng.state(Device::cpu()) == before);
  }
}

void backward_in_body(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor w = c.leaf_input("w");
  const auto body = [&](const Tensor& input) {
    const Tensor t = input.detach();
    t.set_requires_grad(true);
    const Tensor y = sin(ag, mul(ag, t, w));
    const Tensor grad = ag.grad({sum(ag, y)}, {t}, {.create_graph = true})[0];
    return mul(ag, grad, w);
  };
  ag.backward(sq(ag, c.ckpt("c", kNonReentrant, body, c.input("x"))));
}

void queue_callback_nested(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const TwoLayers m = two_layers(c);
  const Tensor h = ckpt_tanh(c, "c", kReentrant, m.l1, c.leaf_input("x"));
  m.l2.bias.register_post_accumulate_grad_hook([&](const Tensor&) { c.queue("outer"); });
  m.l1.bias.register_post_accumulate_grad_hook([&](const Tensor&) { c.queue("inner"); });
  ag.backward(sq(ag, m.l2(ag, h)));
}

void exception_nested(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const TwoLayers m = two_layers(c);
  const Tensor h = ckpt_tanh(c, "c", kReentrant, m.l1, c.leaf_input("x"));
  m.l2.bias.register_post_accumulate_grad_hook([&](const Tensor&) { c.queue("outer"); });
  m.l1.bias.register_post_accumulate_grad_hook([&](const Tensor&) {
    c.queue("inner");
    throw ValueError("injected");
  });
  c.guarded([&] { ag.backward(sq(ag, m.l2(ag, h))); });
}

// How many parameters the task that runs now will accumulate or has.
void mark_visible(ProgramRun& c, const std::vector<std::pair<std::string, Tensor>>& leaves) {
  Autograd& ag = c.autograd();
  int visible = 0;
  for (const auto& [name, leaf] : leaves) {
    const Edge sink = gradient_edge(ag, leaf);
    visible += ag.will_execute(*sink.node) ? 1 : 0;
  }
  c.mark("visible_leaves:" + std::to_string(visible));
}

void epilogue_timing(ProgramRun& c) {
  constexpr LeafOptions kLater = {.is_observed = false};
  Autograd& ag = c.autograd();
  const auto linear = [&](const char* name) {
    return c.linear(name, {.weight = kLater, .bias = kLater});
  };
  const nn::Linear l1 = linear("l1");
  const nn::Linear l2 = linear("l2");
  const nn::Linear l3 = linear("l3");
  const auto parameters = c.leaves();
  std::set<GraphTaskId> seen;
  for (const auto& [name, leaf] : parameters) {
    leaf.register_post_accumulate_grad_hook([&](const Tensor&) {
      if (seen.insert(ag.current_graph_task()).second) mark_visible(c, parameters);
    });
    c.observe(name, leaf);
  }
  const Tensor h = ckpt_tanh(c, "A", kReentrant, l1, c.leaf_input("x"));
  const Tensor loss = sq(ag, l3(ag, ckpt_tanh(c, "B", kReentrant, l2, h)));
  c.hook(loss, "loss", [&](const Tensor&) {
    c.queue("epilogue");
    return Tensor();
  });
  ag.backward(loss);
}

constexpr std::array kCheckpointPrograms = {
    ConformProgram{"P23_ckpt_reentrant", reentrant},
    ConformProgram{"P24_ckpt_nonreentrant", nonreentrant},
    ConformProgram{"P25_ckpt_nonreentrant_tail", nonreentrant_tail},
    ConformProgram{"P26_ckpt_no_early_stop", no_early_stop},
    ConformProgram{"P27_ckpt_nested_reentrant", nested_reentrant},
    ConformProgram{"P28_ckpt_nested_nonreentrant", nested_nonreentrant},
    ConformProgram{"P29_ckpt_nonreentrant_retain", nonreentrant_retain},
    ConformProgram{"P30_ckpt_reentrant_inputs_error", reentrant_inputs_error},
    ConformProgram{"P31_ckpt_reentrant_tied", reentrant_tied},
    ConformProgram{"P32_ckpt_reentrant_tied_outside", reentrant_tied_outside},
    ConformProgram{"P33_ckpt_nonreentrant_tied", nonreentrant_tied},
    ConformProgram{"P34_ckpt_reentrant_nograd_input", reentrant_nograd_input},
    ConformProgram{"P35_ckpt_frozen_inside", frozen_inside},
    ConformProgram{"P36_ckpt_rng", rng},
    ConformProgram{"P37_backward_in_ckpt_body", backward_in_body},
    ConformProgram{"P39_queue_callback_nested", queue_callback_nested},
    ConformProgram{"P48_exception_nested", exception_nested},
    ConformProgram{"P74_epilogue_timing", epilogue_timing},
};

}  // namespace

std::span<const ConformProgram> checkpoint_programs() {
  return kCheckpointPrograms;
}

}  // namespace zeroproof
