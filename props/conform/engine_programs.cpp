// Programs about callbacks, nested backwards and exceptions.
#include <algorithm>
#include <array>
#include <set>

#include "model/accumulate_grad.h"
#include "model/custom_function.h"
#include "props/conform/closeness.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

constexpr LinearOptions kNoBias = {.has_bias = false};

Tensor mlp_loss(ProgramRun& c, const nn::Linear& l1, const nn::Linear& l2, const Tensor& x) {
  Autograd& ag = c.autograd();
  return sq(ag, l2(ag, tanh(ag, l1(ag, x))));
}

// A tensor hook that queues a callback and keeps the gradient.
Tensor::Hook queueing(ProgramRun& c, std::string label, std::function<void()> then = {}) {
  return [&c, label = std::move(label), then = std::move(then)](const Tensor&) {
    c.queue(label, then);
    return Tensor();
  };
}

void will_execute(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  c.linear("l_unused");
  const Tensor loss = mlp_loss(c, l1, l2, c.input());
  l2.bias.register_post_accumulate_grad_hook([&](const Tensor&) {
    for (const auto& [name, leaf] : c.leaves()) {
      if (!name.ends_with("weight")) continue;
      const Edge edge = gradient_edge(ag, leaf);
      c.mark(name, ag.will_execute(*edge.node));
    }
    c.mark("root", ag.will_execute(*loss.grad_fn()));
  });
  ag.backward(loss);
}

void queue_callback(ProgramRun& c) {
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const Tensor loss = mlp_loss(c, l1, l2, c.input());
  c.hook(loss, "loss", queueing(c, "a", [&] { c.queue("c"); }));
  l1.weight.register_post_accumulate_grad_hook([&](const Tensor&) { c.queue("b"); });
  c.autograd().backward(loss);
}

void queue_callback_outside(ProgramRun& c) {
  c.guarded([&] { c.queue("x"); });
}

void callback_runs_backward(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const Tensor x = c.input();
  const Tensor other = sq(ag, l2(ag, x));
  const Tensor loss = sq(ag, l1(ag, x));
  c.hook(loss, "loss", queueing(c, "a", [&] { ag.backward(other); }));
  ag.backward(loss);
  c.mark("depth_ok");
}

// A Function whose backward differentiates a graph of its own.
CustomFunction nested_backward(ProgramRun& c, const std::string& label,
                               const std::function<Tensor(const Tensor&)>& body) {
  return {"NestedBackwardBackward",
          [body](FunctionContext& ctx, const TensorList& inputs) {
            ctx.save_for_backward({inputs[0]});
            return TensorList{body(inputs[0])};
          },
          [&c, label, body](FunctionContext& ctx, const TensorList& grads) {
            c.emit(EventKind::fn_backward_begin, label);
            const Tensor x = ctx.saved_tensors()[0].detach();
            x.set_requires_grad(true);
            Tensor y;
            {
              const GradMode enabled(c.autograd(), true);
              y = body(x);
            }
            c.autograd().backward(TensorList{y}, grads);
            c.emit(EventKind::fn_backward_end, label);
            return TensorList{x.grad()};
          }};
}

enum class FirstBranch { nested, plain };

void reentrant_priority(ProgramRun& c, FirstBranch first) {
  Autograd& ag = c.autograd();
  const auto l0 = c.linear("l0");
  const auto la = c.linear("la");
  const auto lb = c.linear("lb");
  const Tensor h = tanh(ag, l0(ag, c.input()));
  const auto function =
      nested_backward(c, "a", [&ag, &la](const Tensor& x) { return tanh(ag, la(ag, x)); });
  Tensor a;
  if (first == FirstBranch::nested) a = apply_function(ag, function, {h})[0];
  const Tensor b = lb(ag, h);
  if (first == FirstBranch::plain) a = apply_function(ag, function, {h})[0];
  ag.backward(sum(ag, mul(ag, a, b)));
}

void reentrant_priority_nested_first(ProgramRun& c) {
  reentrant_priority(c, FirstBranch::nested);
}
void reentrant_priority_swapped(ProgramRun& c) {
  reentrant_priority(c, FirstBranch::plain);
}

Tensor ones_like(const Tensor& x) {
  return Tensor::full(x.sizes(), 1.0, x.dtype()).on(x.device());
}

CustomFunction deep(ProgramRun& c, int level, std::vector<std::int32_t>& threads) {
  Autograd& ag = c.autograd();
  return {"DeepBackward",
          [&ag](FunctionContext&, const TensorList& inputs) {
            return TensorList{mul(ag, inputs[0], 1.5)};
          },
          [&c, &ag, level, &threads](FunctionContext&, const TensorList& grads) {
            c.emit(EventKind::fn_backward_begin, std::to_string(level));
            threads.push_back(ag.current_thread());
            if (level > 0) {
              const GradMode enabled(ag, true);
              const Tensor x = ones_like(grads[0]);
              x.set_requires_grad(true);
              const Tensor y = apply_function(ag, deep(c, level - 1, threads), {x})[0];
              const GradMode disabled(ag, false);
              ag.backward(TensorList{y}, TensorList{ones_like(grads[0])});
            }
            return TensorList{mul(ag, grads[0], 1.5)};
          }};
}

void reentrant_depth(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.input("x");
  x.set_requires_grad(true);
  std::vector<std::int32_t> threads;
  const Tensor y = apply_function(ag, deep(c, 70, threads), {x})[0];
  ag.backward(TensorList{y}, TensorList{ones_like(x)});
  const auto main = std::count(threads.begin(), threads.end(), ag.current_thread());
  c.mark("main_levels:" + std::to_string(main));
  c.mark("other_thread_levels:" + std::to_string(std::ssize(threads) - main));
  const std::set<std::int32_t> distinct(threads.begin(), threads.end());
  c.mark("distinct_threads:" + std::to_string(distinct.size()));
}

void exception_in_hook(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  const Tensor x = c.input();
  bool is_bad = true;
  l2.weight.register_post_accumulate_grad_hook([&](const Tensor&) {
    if (is_bad) throw ValueError("injected");
  });
  const Tensor loss = mlp_loss(c, l1, l2, x);
  c.hook(loss, "loss", queueing(c, "a"));
  c.guarded([&] { ag.backward(loss); });
  std::set<std::string> with_grad;
  for (const auto& [name, leaf] : c.leaves())
    if (leaf.grad().is_defined()) with_grad.insert(name);
  std::string names;
  for (const std::string& name : with_grad) names += (names.empty() ? "" : ",") + name;
  c.mark("grads:" + names);
  is_bad = false;
  ag.backward(mlp_loss(c, l1, l2, x));
}

void exception_in_callback(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const Tensor x = c.input();
  const Tensor loss = sq(ag, l1(ag, x));
  c.hook(loss, "loss", [&](const Tensor&) {
    c.queue("a");
    c.queue("b", [] { throw ValueError("injected"); });
    c.queue("d");
    return Tensor();
  });
  c.guarded([&] { ag.backward(loss); });
  ag.backward(sq(ag, l1(ag, x)));
}

void anomaly_nan(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1", kNoBias);
  ag.ops().copy_in_place(l1.weight, Tensor::full({}, 0.0, l1.weight.dtype()));
  ag.set_anomaly_enabled(true);
  const Tensor y = sqrt(ag, l1(ag, c.input()));
  c.guarded([&] { ag.backward(sum(ag, mul(ag, y, 0.0))); });
  ag.set_anomaly_enabled(false);
}

void hooks_changed_during_backward(ProgramRun& c) {
  const auto l1 = c.linear("l1");
  const auto l2 = c.linear("l2");
  HookHandle extra =
      l1.weight.register_post_accumulate_grad_hook([&](const Tensor&) { c.mark("removed"); });
  l2.bias.register_post_accumulate_grad_hook([&](const Tensor&) {
    l1.bias.register_post_accumulate_grad_hook([&](const Tensor&) { c.mark("late"); });
    extra.remove();
  });
  c.autograd().backward(mlp_loss(c, l1, l2, c.input()));
}

void hook_threads(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l1 = c.linear("l1");
  const Tensor loss = sq(ag, l1(ag, c.input()));
  const std::int32_t main = ag.current_thread();
  std::int32_t hook_thread = -1;
  std::int32_t callback_thread = -1;
  c.hook(loss, "loss", queueing(c, "a", [&] { callback_thread = ag.current_thread(); }));
  l1.weight.register_post_accumulate_grad_hook(
      [&](const Tensor&) { hook_thread = ag.current_thread(); });
  ag.backward(loss);
  c.mark("hook_thread_is_main", hook_thread == main);
  c.mark("cb_thread_is_main", callback_thread == main);
}

void hook_threads_without_multithreading(ProgramRun& c) {
  c.autograd().set_multithreading_enabled(false);
  hook_threads(c);
}

// Forward on a side stream, backward from the default one.
void streams(ProgramRun& c) {
  constexpr StreamIndex kSide = 1;
  Autograd& ag = c.autograd();
  const Device device = c.device().is_cpu() ? Device::cuda(0) : c.device();
  const auto l1 = c.linear("l1");
  const Tensor x = c.input();
  const StreamIndex caller = ag.set_current_stream(device, kSide);
  const Tensor loss = sq(ag, l1(ag, x));
  ag.set_current_stream(device, caller);
  StreamIndex hook_stream = -1;
  StreamIndex callback_stream = -1;
  c.hook(loss, "loss", queueing(c, "a", [&] { callback_stream = ag.current_stream(device); }));
  l1.weight.register_post_accumulate_grad_hook(
      [&](const Tensor&) { hook_stream = ag.current_stream(device); });
  ag.backward(loss);
  c.mark("acc_on_side", hook_stream == kSide);
  c.mark("cb_on_caller", callback_stream == caller);
  const Tensor expected = mm(ag, t(ag, mul(ag, l1(ag, x), 2.0)), x);
  c.mark("grad_ok", is_close(l1.weight.grad(), expected));
}

void grad_mode_in_hooks(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor w = c.leaf_input("w");
  w.register_post_accumulate_grad_hook([&](const Tensor&) { c.mark("acc", ag.is_grad_enabled()); });
  for (const bool creates_graph : {false, true}) {
    const Tensor loss = sq(ag, w);
    c.hook(loss, "loss", queueing(c, "a", [&] { c.mark("cb", ag.is_grad_enabled()); }));
    ag.backward(loss, {.create_graph = creates_graph});
    w.set_grad({});
  }
}

void two_engines_one_loss(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto la = c.linear("A.l");
  const auto lb = c.linear("B.l");
  const Tensor x = c.input();
  const Tensor a = la(ag, x);
  const Tensor b = lb(ag, x);
  c.hook(a, "outA", queueing(c, "epilogueA"));
  c.hook(b, "outB", queueing(c, "epilogueB"));
  const Tensor loss_a = sq(ag, a);
  ag.backward(add(ag, loss_a, sq(ag, b)));
}

void loss_used_in_two_backwards(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const auto l = c.linear("l");
  const Tensor out = l(ag, c.input());
  c.hook(out, "out", queueing(c, "e"));
  ag.backward(sq(ag, out), {.retain_graph = true});
  ag.backward(sum(ag, abs(ag, out)));
}

void callback_in_autograd_grad(ProgramRun& c) {
  Autograd& ag = c.autograd();
  constexpr LeafOptions kHookedOnly = {.has_tensor_hook = true};
  const auto l = c.linear("l", {.weight = kHookedOnly, .bias = kHookedOnly});
  const Tensor h = l(ag, c.input());
  c.hook(h, "h", queueing(c, "e"));
  ag.grad({sq(ag, h)}, {h, l.bias});
  c.mark("returned");
}

void post_acc_of_nested_parent_leaf(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor p = c.leaf_input("p");
  const Tensor y = mul(ag, p, 2.0);
  c.hook(y, "y", [&](const Tensor&) {
    const GradMode enabled(ag, true);
    ag.backward(sq(ag, mul(ag, p, 5.0)));
    return Tensor();
  });
  ag.backward(sq(ag, y));
}

constexpr std::array kEnginePrograms = {
    ConformProgram{"P22_will_execute", will_execute},
    ConformProgram{"P38_queue_callback", queue_callback},
    ConformProgram{"P40_queue_callback_outside", queue_callback_outside},
    ConformProgram{"P41_callback_runs_backward", callback_runs_backward},
    ConformProgram{"P43_reentrant_priority", reentrant_priority_nested_first},
    ConformProgram{"P44_reentrant_priority_swapped", reentrant_priority_swapped},
    ConformProgram{"P45_reentrant_depth", reentrant_depth},
    ConformProgram{"P46_exception_in_hook", exception_in_hook},
    ConformProgram{"P47_exception_in_callback", exception_in_callback},
    ConformProgram{"P49_anomaly_nan", anomaly_nan},
    ConformProgram{"P50_hooks_changed_during_backward", hooks_changed_during_backward},
    ConformProgram{"P51_cuda_threads", hook_threads},
    ConformProgram{"P80_multithreading_disabled", hook_threads_without_multithreading},
    ConformProgram{"P81_cuda_streams", streams},
    ConformProgram{"P83_grad_mode_in_hooks", grad_mode_in_hooks},
    ConformProgram{"P85_two_engines_one_loss", two_engines_one_loss},
    ConformProgram{"P86_loss_used_in_two_backwards", loss_used_in_two_backwards},
    ConformProgram{"P94_callback_in_autograd_grad", callback_in_autograd_grad},
    ConformProgram{"P95_post_acc_of_nested_parent_leaf", post_acc_of_nested_parent_leaf},
};

}  // namespace

std::span<const ConformProgram> engine_programs() {
  return kEnginePrograms;
}

}  // namespace zeroproof
