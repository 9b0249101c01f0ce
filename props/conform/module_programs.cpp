// Programs about modules, custom Functions, and tensors that change under the graph.
#include <fmt/format.h>

#include <array>

#include "model/accumulate_grad.h"
#include "model/custom_function.h"
#include "props/conform/module_watch.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

constexpr std::array kCheckpoints = {std::pair("R", CheckpointKind::reentrant),
                                     std::pair("N", CheckpointKind::non_reentrant)};

void module_bwd_hooks(ProgramRun& c) {
  Autograd& ag = c.autograd();
  nn::Linear l1 = c.linear("l1");
  nn::Linear l2 = c.linear("l2");
  watch_backward(c, l1, "l1");
  watch_backward(c, l2, "l2");
  ag.backward(sq(ag, l2(ag, tanh(ag, l1(ag, c.input())))));
}

class TanhBlock final : public nn::Module {
 public:
  TanhBlock(nn::Linear l1, nn::Linear l2)
      : l1_(register_module("l1", std::make_shared<nn::Linear>(std::move(l1)))),
        l2_(register_module("l2", std::make_shared<nn::Linear>(std::move(l2)))) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {(*l2_)(ag, tanh(ag, (*l1_)(ag, inputs[0])))};
  }

 private:
  std::shared_ptr<nn::Linear> l1_;
  std::shared_ptr<nn::Linear> l2_;
};

void nested_module_hooks(ProgramRun& c) {
  Autograd& ag = c.autograd();
  TanhBlock block(c.linear("block.l1"), c.linear("block.l2"));
  for (const auto& [name, module] : block.named_modules()) {
    const std::string full = name.empty() ? "block" : "block." + name;
    watch_forward(c, *module, full);
    watch_backward(c, *module, full);
  }
  ag.backward(sq(ag, block(ag, c.leaf_input("x"))));
}

void module_hooks_in_ckpt(ProgramRun& c) {
  Autograd& ag = c.autograd();
  nn::Linear l1 = c.linear("l1");
  nn::Linear l2 = c.linear("l2");
  watch_backward(c, l1, "l1");
  watch_backward(c, l2, "l2");
  const Tensor x = c.leaf_input("x");
  const auto body = [&](const Tensor& t) { return l2(ag, tanh(ag, l1(ag, t))); };
  for (const auto& [label, kind] : kCheckpoints) ag.backward(sq(ag, c.ckpt(label, kind, body, x)));
}

// An identity whose backward makes a mark: ZeRO-3's way to learn where a module's backward begins
// and ends.
Tensor marked(ProgramRun& c, const char* node, const std::string& mark, const Tensor& x) {
  const CustomFunction identity = {
      .name = node,
      .backward =
          [&c, mark](FunctionContext&, const TensorList& grads) {
            c.mark(mark);
            return grads;
          },
      .forward_alone = [](const TensorList& inputs) { return TensorList{inputs[0].detach()}; },
      .setup_context = [](FunctionContext&, const TensorList&, const TensorList&) {}};
  return apply_function(c.autograd(), identity, {x})[0];
}

void put_boundaries(ProgramRun& c, nn::Module& module, const std::string& name) {
  module.register_forward_pre_hook([&c, name](const TensorList& inputs) {
    return TensorList{marked(c, "PostBwdBackward", "post_" + name, inputs[0])};
  });
  module.register_forward_hook([&c, name](const TensorList&, const TensorList& outputs) {
    return TensorList{marked(c, "PreBwdBackward", "pre_" + name, outputs[0])};
  });
}

void zero3_boundaries(ProgramRun& c) {
  Autograd& ag = c.autograd();
  nn::Linear l1 = c.linear("l1");
  nn::Linear l2 = c.linear("l2");
  put_boundaries(c, l1, "l1");
  put_boundaries(c, l2, "l2");
  ag.backward(sq(ag, l2(ag, tanh(ag, l1(ag, c.input())))));
}

void zero3_boundaries_ckpt(ProgramRun& c) {
  Autograd& ag = c.autograd();
  nn::Linear l1 = c.linear("l1");
  nn::Linear l2 = c.linear("l2");
  nn::Linear l3 = c.linear("l3");
  put_boundaries(c, l1, "l1");
  put_boundaries(c, l2, "l2");
  put_boundaries(c, l3, "l3");
  const Tensor x = c.leaf_input("x");
  const auto body = [&](const Tensor& t) { return l2(ag, tanh(ag, l1(ag, t))); };
  for (const auto& [label, kind] : kCheckpoints)
    ag.backward(sq(ag, l3(ag, c.ckpt(label, kind, body, x))));
}

struct TiledSum {
  Tensor loss;
  Tensor grad;  // of the input
};

// Loss and gradient tile by tile, each tile with a backward of its own.
TiledSum sum_over_tiles(Autograd& ag, const nn::Linear& head, const Tensor& h, int tiles) {
  Tensor total = Tensor::full({}, 0.0, h.dtype()).on(h.device());
  TensorList grads;
  for (const Tensor& tile : chunk(ag, h.detach(), tiles, 0)) {
    const Tensor part = tile.detach();
    part.set_requires_grad(true);
    Tensor loss;
    {
      const GradMode enabled(ag, true);
      loss = sq(ag, head(ag, part));
    }
    ag.backward(loss);
    grads.push_back(part.grad());
    total = add(ag, total, loss.detach());
  }
  return {total, cat(ag, grads)};
}

void backward_in_forward(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const nn::Linear l1 = c.linear("l1");
  const nn::Linear head = c.linear("head", {.has_bias = false});
  const CustomFunction tiled_loss = {.name = "TiledLossBackward",
                                     .forward =
                                         [&](FunctionContext& ctx, const TensorList& inputs) {
                                           c.emit(EventKind::fn_forward_begin, "tiled");
                                           const TiledSum sum =
                                               sum_over_tiles(ag, head, inputs[0], 2);
                                           ctx.save_for_backward({sum.grad});
                                           c.emit(EventKind::fn_forward_end, "tiled");
                                           return TensorList{sum.loss};
                                         },
                                     .backward =
                                         [&](FunctionContext& ctx, const TensorList& grads) {
                                           c.emit(EventKind::fn_backward_begin, "tiled");
                                           const Tensor grad = ctx.saved_tensors()[0];
                                           c.emit(EventKind::fn_backward_end, "tiled");
                                           return TensorList{mul(ag, grad, grads[0])};
                                         }};
  ag.backward(apply_function(ag, tiled_loss, {tanh(ag, l1(ag, c.input()))})[0]);
}

void inplace_moves_hooks(ProgramRun& c) {
  Autograd& ag = c.autograd();
  Tensor y = mul(ag, c.leaf_input("x"), 2.0);
  std::map<std::string, double> first;
  const auto keep_first = [&](const std::string& label) {
    c.hook(y, label, [&first, label](const Tensor& grad) {
      first[label] = grad.values()[0];
      return Tensor();
    });
  };
  keep_first("A");
  mul_in_place(ag, y, 3.0);
  keep_first("B");
  ag.backward(sq(ag, y));
  c.mark(fmt::format("ratio_A_over_B:{:.1f}", first["A"] / first["B"]));
}

void data_swap(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const nn::Linear l1 = c.linear("l1");
  const nn::Linear l2 = c.linear("l2");
  const Tensor x = c.input();
  const Tensor w = l1.weight;
  const Tensor full = w.on(w.device());
  const Tensor empty = Tensor::of({}, {0}, w.dtype()).on(w.device());
  {
    const Tensor y = sq(ag, l2(ag, tanh(ag, l1(ag, x))));
    w.set_data(empty);
    c.hook(y, "h", [&](const Tensor&) {
      w.set_data(full);
      c.mark("restored");
      return Tensor();
    });
    ag.backward(y);
  }
  c.mark("bad");
  for (const auto& [name, leaf] : c.leaves()) leaf.set_grad({});
  w.set_data(empty);
  const Edge made_while_empty = gradient_edge(ag, w);
  w.set_data(full);
  const Tensor loss = sq(ag, l1(ag, x));
  c.guarded([&] { ag.backward(loss); });
  w.set_grad({});
}

// Counts the sequence numbers that something takes, by a node made before and one made after it.
class NumberProbe {
 public:
  NumberProbe(ProgramRun& c, Tensor x) : c_(c), x_(std::move(x)) {}

  template <class Body>
  void count(const char* label, const Body& body) {
    const std::uint64_t before = number();
    body();
    c_.mark(fmt::format("{}:{}", label, number() - before - 1));
  }

 private:
  std::uint64_t number() { return mul(c_.autograd(), x_, 1.0).grad_fn()->sequence_nr(); }

  ProgramRun& c_;
  Tensor x_;
};

void sequence_numbers(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.leaf_input("x");
  const Tensor y = c.input("y");
  std::uint64_t inner = 0;
  const auto backward = [](FunctionContext&, const TensorList& grads) { return grads; };
  const CustomFunction identity = {"IdBackward",
                                   [&](FunctionContext&, const TensorList& inputs) {
                                     return TensorList{mul(ag, inputs[0], 1.0)};
                                   },
                                   backward};
  const CustomFunction outer = {"FnBackward",
                                [&](FunctionContext&, const TensorList& inputs) {
                                  const GradMode enabled(ag, true);
                                  inner = mul(ag, x, 2.0).grad_fn()->sequence_nr();
                                  const GradMode disabled(ag, false);
                                  return TensorList{mul(ag, inputs[0], 1.0)};
                                },
                                backward};
  NumberProbe probe(c, x);
  probe.count("plain_op", [&] { mul(ag, y, 2.0); });
  probe.count("grad_op", [&] { mul(ag, x, 2.0); });
  probe.count("function_no_grad_input", [&] { apply_function(ag, identity, {y}); });
  probe.count("function_under_no_grad", [&] {
    const GradMode disabled(ag, false);
    apply_function(ag, identity, {x});
  });
  const Tensor out = apply_function(ag, outer, {x})[0];
  c.mark("outer_smaller", out.grad_fn()->sequence_nr() < inner);
  const auto loss = [&](double factor) { return sq(ag, mul(ag, x, factor)); };
  const TensorList two = {loss(2.0), loss(3.0)};
  probe.count("two_roots", [&] { ag.backward(two); });
  const Tensor one = loss(2.0);
  probe.count("one_root", [&] { ag.backward(one); });
}

constexpr std::array kModulePrograms = {
    ConformProgram{"P19_module_bwd_hooks", module_bwd_hooks},
    ConformProgram{"P20_nested_module_hooks", nested_module_hooks},
    ConformProgram{"P42_backward_in_forward", backward_in_forward},
    ConformProgram{"P57_inplace_moves_hooks", inplace_moves_hooks},
    ConformProgram{"P59_data_swap", data_swap},
    ConformProgram{"P72_zero3_boundaries", zero3_boundaries},
    ConformProgram{"P73_zero3_boundaries_ckpt", zero3_boundaries_ckpt},
    ConformProgram{"P84_module_hooks_in_ckpt", module_hooks_in_ckpt},
    ConformProgram{"P93_sequence_numbers", sequence_numbers},
};

}  // namespace

std::span<const ConformProgram> module_programs() {
  return kModulePrograms;
}

}  // namespace zeroproof
