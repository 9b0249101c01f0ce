// The scenarios of record_deepspeed.py.
#include <array>

#include "model/transforms/transforms.h"
#include "props/conform/deepspeed_run.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

constexpr int kSteps = 3;  // the recorder's default

using Backward = std::function<void(DeepspeedRun&, const Tensor&)>;

void backward_of_engine(DeepspeedRun& run, const Tensor& loss) {
  run.backward(loss);
}

void backward_of_tensor(DeepspeedRun& run, const Tensor& loss) {
  run.autograd().backward(loss);
}

void train_on(DeepspeedRun& run, int steps = kSteps, const Backward& backward = backward_of_engine,
              const std::string& tag = "it") {
  for (int i = 0; i < steps; ++i) {
    run.mark("iter_" + std::to_string(i));
    const Tensor out = run.engine().forward(run.data());
    run.dump("output", "loss" + std::to_string(i), out);
    backward(run, out);
    if (i == 0) run.compare_grads(tag + "0");
    run.step();
  }
}

template <DeepspeedModel kKind>
void plain(DeepspeedRun& run) {
  run.add_engine(kKind);
  train_on(run);
}

template <DeepspeedModel kKind>
void manual(DeepspeedRun& run) {
  run.add_engine(kKind);
  train_on(run, kSteps, backward_of_tensor);
}

void leaf_module(DeepspeedRun& run) {
  run.add_engine(DeepspeedModel::leaf, {}, "blk");
  train_on(run);
}

void two_losses_retain(DeepspeedRun& run) {
  run.add_engine(DeepspeedModel::two_losses);
  for (int i = 0; i < kSteps; ++i) {
    run.mark("iter_" + std::to_string(i));
    const TensorList losses = run.engine().forward(TensorList{run.data()});
    run.backward(losses.at(0), {.retain_graph = true});
    run.mark("between_losses");
    run.backward(losses.at(1));
    if (i == 0) run.compare_grads("it0");
    run.step();
  }
}

// Python's sum() begins with 0.
void two_losses_sum(DeepspeedRun& run) {
  run.add_engine(DeepspeedModel::two_losses);
  Autograd& ag = run.autograd();
  for (int i = 0; i < kSteps; ++i) {
    run.mark("iter_" + std::to_string(i));
    const TensorList losses = run.engine().forward(TensorList{run.data()});
    const Tensor loss = add(ag, add(ag, losses.at(0), 0.0), losses.at(1));
    run.dump("output", "loss" + std::to_string(i), loss);
    ag.backward(loss);
    if (i == 0) run.compare_grads("it0");
    run.step();
  }
}

void accumulation(DeepspeedRun& run) {
  run.set_accumulation_steps(2);
  run.add_engine(DeepspeedModel::mlp);
  for (int i = 0; i < 4; ++i) {
    run.mark("micro_" + std::to_string(i));
    run.backward(run.engine().forward(run.data()));
    if (i == 1) run.compare_grads("micro1");
    run.step();
  }
}

void zero_grad_between(DeepspeedRun& run) {
  run.add_engine(DeepspeedModel::mlp);
  run.backward(run.engine().forward(run.data()));
  run.write(EventKind::opt_zero_grad);
  run.engine().zero_grad();
  train_on(run, 2, backward_of_engine, "after");
}

void non_scalar(DeepspeedRun& run) {
  run.add_engine(DeepspeedModel::mlp_without_loss);
  for (int i = 0; i < kSteps; ++i) {
    run.mark("iter_" + std::to_string(i));
    const Tensor x = run.data();
    const Tensor out = run.engine().forward(x);
    const Tensor grad = Tensor::full(out.sizes(), 0.5, run.dtype()).on(x.device());
    run.autograd().backward({out}, {grad}, {});
    if (i == 0) run.compare_grads("it0");
    run.step();
  }
}

void two_engines(DeepspeedRun& run) {
  run.add_engine(DeepspeedModel::mlp, "A");
  run.add_engine(DeepspeedModel::mlp, "B");
  Autograd& ag = run.autograd();
  for (int i = 0; i < kSteps; ++i) {
    run.mark("iter_" + std::to_string(i));
    const Tensor x = run.data();
    const Tensor a = run.engine(0).forward(x);
    const Tensor loss = add(ag, a, mul(ag, run.engine(1).forward(x), 2.0));
    ag.backward(loss);
    if (i == 0) {
      run.compare_grads("A0", 0);
      run.compare_grads("B0", 1);
    }
    run.step(0);
    run.step(1);
  }
}

void exception_recovery(DeepspeedRun& run) {
  run.add_engine(DeepspeedModel::raising);
  const Tensor x = run.data();
  const bool is_through = run.guarded([&] { run.backward(run.engine().forward(x)); });
  if (is_through) run.mark("no_exception");
  run.mark("user_zero_grad");
  run.guarded([&] { run.engine().zero_grad(); });
  train_on(run, 2, backward_of_engine, "after");
}

// A transform of the engine's forward, then one ordinary step. What it gave is not recorded.
using Transform = TensorList (*)(Autograd& ag, const func::Function& forward, const Tensor& x);

template <Transform kTransform>
void transformed(DeepspeedRun& run) {
  run.add_engine(DeepspeedModel::mlp);
  const Tensor x = run.data();
  const func::Function forward = [&run](const TensorList& args) {
    return run.engine().forward(args);
  };
  run.mark("transform_begin");
  run.guarded([&] {
    for (const Tensor& value : kTransform(run.autograd(), forward, x))
      run.dump("transform", {}, value);
  });
  run.mark("transform_end");
  train_on(run, 1);
}

TensorList grad_of(Autograd& ag, const func::Function& forward, const Tensor& x) {
  return func::grad(ag, forward)({x});
}

TensorList grad_and_value_of(Autograd& ag, const func::Function& forward, const Tensor& x) {
  const func::GradAndValue made = func::grad_and_value(ag, forward, {x});
  return {made.grads.at(0), made.value};
}

TensorList jacrev_of(Autograd& ag, const func::Function& forward, const Tensor& x) {
  return func::jacrev(ag, forward)({x});
}

TensorList vmap_grad_of(Autograd& ag, const func::Function& forward, const Tensor& x) {
  return func::vmap(ag, func::grad(ag, forward))({x});
}

constexpr std::array<DeepspeedProgram, 23> kDeepspeedPrograms = {{
    {"mlp", plain<DeepspeedModel::mlp>},
    {"ckpt_reentrant", plain<DeepspeedModel::reentrant>},
    {"ckpt_nonreentrant", plain<DeepspeedModel::non_reentrant>},
    {"ckpt_reentrant_manual", manual<DeepspeedModel::reentrant>},
    {"frozen_ckpt_nonreentrant", plain<DeepspeedModel::non_reentrant_frozen>},
    {"frozen_ckpt_reentrant", plain<DeepspeedModel::reentrant_frozen>},
    {"tiled_loss", plain<DeepspeedModel::tiled>},
    {"two_losses_retain", two_losses_retain},
    {"two_losses_sum_manual", two_losses_sum},
    {"manual_backward", manual<DeepspeedModel::mlp>},
    {"non_scalar", non_scalar},
    {"gas2", accumulation},
    {"func_grad", transformed<grad_of>},
    {"func_grad_and_value", transformed<grad_and_value_of>},
    {"func_jacrev", transformed<jacrev_of>},
    {"func_vmap_grad", transformed<vmap_grad_of>},
    {"shared_weights", plain<DeepspeedModel::tied>},
    {"unused_params", plain<DeepspeedModel::unused>},
    {"undefined_grad", plain<DeepspeedModel::undefined_grad>},
    {"two_engines", two_engines},
    {"leaf_module", leaf_module},
    {"exception_recovery", exception_recovery},
    {"zero_grad_between", zero_grad_between},
}};

}  // namespace

const DeepspeedProgram* find_deepspeed_program(std::string_view name) {
  for (const DeepspeedProgram& program : kDeepspeedPrograms)
    if (program.name == name) return &program;
  return nullptr;
}

}  // namespace zeroproof
