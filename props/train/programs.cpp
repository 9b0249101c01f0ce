#include "props/train/programs.h"

#include "model/check.h"
#include "props/train/models.h"
#include "props/train/scenario.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

// A module below the engine's, called past the engine.
TensorList call_inner(Pass& pass, const std::string& name, const TensorList& inputs) {
  for (const nn::NamedModule& inner : pass.target().module(0).named_modules())
    if (inner.name == name) return (*inner.module)(pass.autograd(), inputs);
  ZP_CHECK(false, "the model has no such module");
  return {};
}

// A loss of which one term reaches its parameters without an output of the engine.
void bypassing_pass(Pass& pass) {
  const TensorList inputs = pass.next_inputs();
  const Tensor loss = pass.target().forward(0, inputs).at(0);
  const Tensor term = pass.loss_of(call_inner(pass, "aux", inputs));
  pass.differentiate(add(pass.autograd(), loss, term));
}

void repeat(Pass& pass, int times, void (*body)(Pass&)) {
  for (int i = 0; i < times; ++i) body(pass);
}

void pass_and_step(Pass& pass) {
  pass.differentiate(pass.forward());
  pass.step();
}

void pass_alone(Pass& pass) {
  pass.differentiate(pass.forward());
}

}  // namespace

void plain_window(Pass& pass) {
  pass_and_step(pass);
}

void accumulating_window(Pass& pass) {
  const TrainScenario& scenario = pass.scenario();
  const auto micro_batches = static_cast<int>(scenario.accumulation_steps);
  repeat(pass, micro_batches, scenario.is_managed ? pass_and_step : pass_alone);
  if (!scenario.is_managed) pass.step();
}

void non_scalar_window(Pass& pass) {
  const Tensor out = pass.forward();
  if (pass.is_manual()) {
    pass.target().tensor_backward({out}, {Tensor::full(out.sizes(), 0.5, out.dtype())}, false);
  } else {
    pass.target().backward(0, out, {});
  }
  pass.step();
}

void separate_loss_window(Pass& pass) {
  pass.differentiate(pass.loss_of(pass.target().forward(0, pass.next_inputs())));
  pass.step();
}

void container_window(Pass& pass) {
  for (int micro = 0; micro < 2; ++micro) {
    const TensorList outputs = pass.target().forward(0, pass.next_inputs());
    ZP_CHECK(outputs.size() == 3, "the engine keeps what its module returned");
    pass.differentiate(outputs[0]);
    pass.step();
  }
}

void bypass_window(Pass& pass) {
  bypassing_pass(pass);
  pass.step();
}

void bypass_gas2_window(Pass& pass) {
  for (int micro = 0; micro < 2; ++micro) bypass_window(pass);
}

// The first of two micro-batches comes undivided, the second divided: the arguments of one call do
// not affect another, by hand or not.
void scale_argument_window(Pass& pass) {
  const BackwardArguments undivided{.scale_wrt_gas = false};
  TrainTarget& target = pass.target();
  target.record("loss undivided", target.backward(0, pass.forward(), undivided));
  target.step(0);
  const Tensor loss = pass.forward();
  if (pass.is_manual()) {
    pass.differentiate(loss);
  } else {
    target.record("loss divided", target.backward(0, loss, {}));
  }
  pass.step();
}

// The first backward of all was to be scaled and is not: it is refused, and zero_grad is all that
// the next one needs.
void forgotten_scale_window(Pass& pass) {
  if (pass.step_number() == 0 && pass.target().needs_scaler(0)) {
    const Tensor loss = pass.forward();
    bool was_refused = false;
    try {
      pass.target().tensor_backward({loss}, {}, false);
    } catch (const EngineError& error) {
      if (error.id() != EngineErrorId::backward_without_loss_scaling) throw;
      was_refused = true;
    }
    pass.target().zero_grad(0);
    pass.target().record("was refused", Tensor::full({}, was_refused ? 1.0 : 0.0, DType::float32));
  }
  pass_and_step(pass);
}

// The first backward of all fails in its middle; what it left is dropped by zero_grad.
void exception_window(Pass& pass) {
  if (pass.step_number() == 0) {
    try {
      pass.differentiate(pass.forward());
    } catch (const Injected&) {
    }
    pass.target().zero_grad(0);
  }
  pass_and_step(pass);
}

void two_engines_window(Pass& pass) {
  Autograd& ag = pass.autograd();
  TrainTarget& target = pass.target();
  const TensorList inputs = pass.next_inputs();
  Tensor a = target.forward(0, inputs).at(0);
  Tensor b = mul(ag, target.forward(1, inputs).at(0), 2.0);
  if (pass.is_manual() && target.needs_scaler(0)) {
    a = target.scale(0, a, false);
    b = target.scale(1, b, false);
  }
  const Tensor loss = add(ag, a, b);
  if (pass.is_manual()) {
    target.tensor_backward({loss}, {}, false);
  } else {
    target.backward(0, loss, {});
  }
  pass.step();
}

// The second engine reads what the first one wrote.
void chained_engines_window(Pass& pass) {
  for (int micro = 0; micro < 2; ++micro) {
    const TensorList between = pass.target().forward(0, pass.next_inputs());
    pass.differentiate(pass.target().forward(1, between).at(0), false, 1);
    pass.step();
  }
}

// One loss of two engines in every micro-batch. The second engine would accumulate longer; its
// window ends with the first one's.
void shared_loss_window(Pass& pass) {
  Autograd& ag = pass.autograd();
  for (int micro = 0; micro < 2; ++micro) {
    pass.target().set_boundary(1, micro == 1);
    const TensorList inputs = pass.next_inputs();
    const Tensor first = pass.target().forward(0, inputs).at(0);
    const Tensor second = pass.target().forward(1, inputs).at(0);
    pass.differentiate(add(ag, first, second));
    pass.step();
  }
}

void two_losses_window(Pass& pass) {
  const TensorList losses = pass.target().forward(0, pass.next_inputs());
  pass.differentiate(losses.at(0), true);
  pass.differentiate(losses.at(1));
  pass.step();
}

void two_forwards_window(Pass& pass) {
  const Tensor first = pass.forward();
  const Tensor second = pass.forward();
  pass.differentiate(first);
  pass.differentiate(second);
  pass.step();
}

// One micro-batch, whatever a configuration accumulates.
void one_pass_window(Pass& pass) {
  pass_and_step(pass);
}

void two_passes_window(Pass& pass) {
  repeat(pass, 2, pass_and_step);
}

void four_passes_window(Pass& pass) {
  repeat(pass, 4, pass_and_step);
}

void unmanaged_window(Pass& pass) {
  repeat(pass, 2, pass_alone);
  pass.step();
}

void coalesced_window(Pass& pass) {
  pass.target().coalesce(0, [&] { repeat(pass, 2, pass_alone); });
  pass.step();
}

// Two heads that take turns: every window uses one of them in its first micro-batch only, and the
// other one in its second only (H14 to H16, H21).
void alternating_window(Pass& pass) {
  for (std::size_t micro = 0; micro < 2; ++micro) {
    pass.differentiate(pass.target().forward(0, pass.next_inputs()).at(micro));
    pass.step();
  }
}

// The second head takes part in every second window alone; the others leave it where it is (N8).
void unmanaged_skipping_window(Pass& pass) {
  const bool uses_second = pass.step_number() % 2 == 0;
  for (int micro = 0; micro < 2; ++micro) {
    const TensorList losses = pass.target().forward(0, pass.next_inputs());
    const Tensor sum = add(pass.autograd(), losses.at(0), losses.at(1));
    pass.differentiate(uses_second ? sum : losses.at(0));
  }
  pass.step();
}

// zero_grad drops the first backward; the second one alone is stepped with (N5).
void cleared_window(Pass& pass) {
  pass.differentiate(pass.forward());
  pass.target().zero_grad(0);
  pass.differentiate(pass.forward());
  pass.step();
}

// The first forward's tiles ran; its own backward never does. The next step is clean.
void tiled_after_abort_window(Pass& pass) {
  if (pass.step_number() == 0) {
    pass.forward();
    pass.target().zero_grad(0);
  }
  pass_and_step(pass);
}

}  // namespace zeroproof::train
