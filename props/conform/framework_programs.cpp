// Programs about what frameworks build on hooks: DDP's reducer and FSDP2's units.
#include <algorithm>
#include <array>

#include "props/conform/ddp_reducer.h"
#include "props/conform/fsdp2_units.h"
#include "props/conform/program.h"

namespace zeroproof {
namespace {

// l1, tanh, l2.
class FrameworkMlp final : public nn::Module {
 public:
  FrameworkMlp(nn::Linear first, nn::Linear second)
      : l1(register_module("l1", std::make_shared<nn::Linear>(std::move(first)))),
        l2(register_module("l2", std::make_shared<nn::Linear>(std::move(second)))) {}

  std::shared_ptr<nn::Linear> l1;
  std::shared_ptr<nn::Linear> l2;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {(*l2)(ag, tanh(ag, (*l1)(ag, inputs[0])))};
  }
};

DdpReducer::BucketHook reports_buckets(ProgramRun& c) {
  return [&c](std::size_t index, const std::vector<std::size_t>&) { c.bucket_ready(index); };
}

TensorList parameters_of(const ProgramRun& c) {
  TensorList parameters;
  for (const auto& [name, leaf] : c.leaves()) parameters.push_back(leaf);
  return parameters;
}

bool has_all_gradients(const TensorList& parameters) {
  return std::ranges::all_of(parameters,
                             [](const Tensor& parameter) { return parameter.grad().is_defined(); });
}

void ddp(ProgramRun& c) {
  constexpr std::int64_t kElementsMax = 12;
  Autograd& ag = c.autograd();
  nn::Linear l1 = c.linear("l1");
  nn::Linear l2 = c.linear("l2");
  const FrameworkMlp net(std::move(l1), std::move(l2));
  const TensorList parameters = parameters_of(c);
  const std::int64_t bytes = parameters[0].dtype() == DType::float64 ? 8 : 4;
  DdpReducer reducer(ag, parameters, {.bucket_bytes_cap = kElementsMax * bytes},
                     reports_buckets(c));
  const Tensor x = c.input();
  for (int iteration = 0; iteration < 2; ++iteration) {
    ag.backward(sq(ag, reducer.forward(net, x)));
    c.mark("final_after_backward", has_all_gradients(parameters));
  }
}

void ddp_manual_finalization(ProgramRun& c) {
  constexpr std::int64_t kElementsMax = 12;
  Autograd& ag = c.autograd();
  nn::Linear l1 = c.linear("l1");
  nn::Linear l2 = c.linear("l2");
  const Tensor weight = l2.weight;
  const FrameworkMlp net(std::move(l1), std::move(l2));
  const TensorList parameters = parameters_of(c);
  const std::int64_t bytes = parameters[0].dtype() == DType::float64 ? 8 : 4;
  DdpReducer reducer(ag, parameters,
                     {.bucket_bytes_cap = kElementsMax * bytes, .needs_manual_finalization = true},
                     reports_buckets(c));
  const Tensor x = c.input();
  const auto finalize_early = [&] { c.guarded([&] { reducer.finalize_backward(); }); };
  for (int iteration = 0; iteration < 2; ++iteration) {
    const Tensor loss = sq(ag, reducer.forward(net, x));
    c.mark("after_backward", reducer.should_finalize_after_backward());
    finalize_early();
    HookHandle handle =
        weight.register_post_accumulate_grad_hook([&](const Tensor&) { finalize_early(); });
    ag.backward(loss);
    handle.remove();
    c.guarded([&] { reducer.forward(net, x); });
    for (const Tensor& parameter : parameters) parameter.set_grad({});
    reducer.finalize_backward();
    c.mark("has_all", has_all_gradients(parameters));
  }
}

void ddp_find_unused(ProgramRun& c) {
  Autograd& ag = c.autograd();
  nn::Linear l1 = c.linear("l1");
  const nn::Linear unused = c.linear("l_unused");
  nn::Linear l2 = c.linear("l2");
  const FrameworkMlp net(std::move(l1), std::move(l2));
  DdpReducer reducer(ag, parameters_of(c), {.finds_unused = true}, reports_buckets(c));
  ag.backward(sq(ag, reducer.forward(net, c.input())));
  c.mark(std::string("unused_grad:") + (unused.weight.grad().is_defined() ? "a tensor" : "None"));
}

// The recorded program does not keep its parameters, only what order its hooks have.
nn::Linear linear_of(const ProgramRun& c, const Tensor& x, std::int64_t in, std::int64_t out) {
  const auto parameter = [&](const Shape& sizes, double value) {
    Tensor made = Tensor::full(sizes, value, x.dtype()).on(c.device());
    made.set_requires_grad(true);
    return made;
  };
  return nn::Linear(parameter({out, in}, 0.25), parameter({out}, 0.5));
}

// An FrameworkMlp with a parameter of its own.
class ScaledMlp final : public nn::Module {
 public:
  ScaledMlp(std::shared_ptr<FrameworkMlp> inner, const Tensor& scale)
      : mlp(register_module("mlp", std::move(inner))), scale_(register_parameter("scale", scale)) {}

  std::shared_ptr<FrameworkMlp> mlp;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mul(ag, (*mlp)(ag, inputs[0]), scale_)};
  }

 private:
  Tensor& scale_;
};

// The net as three units.
struct ShardedNet {
  ShardedNet(ProgramRun& c, const Tensor& x)
      : units(c.autograd(), [&c](const std::string& what) { c.mark(what); }),
        net(std::make_shared<FrameworkMlp>(linear_of(c, x, 4, 5), linear_of(c, x, 5, 2)),
            scale_of(c, x)) {
    units.add(net, "root");
    units.add(*net.mlp->l1, "l1");
    units.add(*net.mlp->l2, "l2");
  }

  Fsdp2Units units;
  ScaledMlp net;

 private:
  static Tensor scale_of(const ProgramRun& c, const Tensor& x) {
    Tensor scale = Tensor::full({1}, 1.0, x.dtype()).on(c.device());
    scale.set_requires_grad(true);
    return scale;
  }
};

void fsdp2(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.input();
  ShardedNet sharded(c, x);
  ag.backward(sq(ag, sharded.net(ag, x)));
}

void fsdp2_manual_finalization(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.input();
  ShardedNet sharded(c, x);
  sharded.units.set_manual_finalization(true);
  for (int iteration = 0; iteration < 2; ++iteration) {
    ag.backward(sq(ag, sharded.net(ag, x)));
    c.mark("finalize");
    sharded.units.finalize_backward();
  }
}

void fsdp2_reset_iter_state(ProgramRun& c) {
  Autograd& ag = c.autograd();
  const Tensor x = c.input();
  for (const bool resets : {false, true}) {
    ShardedNet sharded(c, x);
    const Tensor out = sharded.net(ag, x);
    out.register_hook([](const Tensor&) -> Tensor { throw ValueError("injected"); });
    c.guarded([&] { ag.backward(sq(ag, out)); });
    if (resets) sharded.units.reset();
    c.mark("again");
    ag.backward(sq(ag, sharded.net(ag, x)));
  }
}

constexpr std::array kFrameworkPrograms = {
    ConformProgram{"P75_ddp", ddp},
    ConformProgram{"P76_ddp_find_unused", ddp_find_unused},
    ConformProgram{"P77_fsdp2", fsdp2},
    ConformProgram{"P110_ddp_manual_finalization", ddp_manual_finalization},
    ConformProgram{"P111_fsdp2_manual_finalization", fsdp2_manual_finalization},
    ConformProgram{"P112_fsdp2_reset_iter_state", fsdp2_reset_iter_state},
};

}  // namespace

std::span<const ConformProgram> framework_programs() {
  return kFrameworkPrograms;
}

}  // namespace zeroproof
