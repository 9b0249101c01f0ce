#include "props/train/backward_hook.h"

#include <utility>

#include "props/train/misuse.h"
#include "props/train/user_calls.h"
#include "props/train/window_misuses.h"
#include "props/train/window_records.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {

BackwardHook::BackwardHook(const WindowContext& window, WindowInputs& inputs,
                           WindowCheckpoints& checkpoints)
    : spec_(window.spec),
      pass_(window.pass),
      engines_(window.engines),
      window_(window),
      inputs_(inputs),
      checkpoints_(checkpoints) {}

void BackwardHook::run(const MicroSpec& micro) {
  const auto interrupt = static_cast<Interrupt>(micro.interrupt);
  switch (interrupt) {
    case Interrupt::none:
      return;
    case Interrupt::step:
      return record_refusal(pass_, "step in a backward", refuses_step(micro));
    case Interrupt::save:
      return checkpoints_.save_inside();
    case Interrupt::forward:
      return evaluate();
    case Interrupt::looks:
      return record_masters(pass_);
    case Interrupt::changes:
      return change_weights();
    case Interrupt::aside:
    case Interrupt::fails:
    case Interrupt::joined:
      return differentiate_aside(interrupt != Interrupt::aside);
    case Interrupt::breaks:
      return break_second(micro.interrupt_at);
    case Interrupt::rescale:
      return record_refusal(pass_, "loss scale in a backward", refuses_rescale(window_));
    case Interrupt::own:
      return differentiate_inside(0);
    case Interrupt::other:
      return differentiate_inside(1);
    case Interrupt::steps:
      differentiate_inside(1);
      return pass_.target().step_early(1);
  }
}

// Until its micro-batch is over, which sees them.
void BackwardHook::change_weights() {
  WeightValues before = change_data(spec_, pass_);
  if (unchanged_.empty()) unchanged_ = std::move(before);
}

void BackwardHook::undo_changes() {
  if (!unchanged_.empty()) set_back(spec_, pass_, std::exchange(unchanged_, {}));
}

void BackwardHook::evaluate() {
  const GradMode disabled(pass_.autograd(), false);
  record_loss(pass_, pass_.target().forward(0, inputs_.next()).at(0));
}

void BackwardHook::differentiate_inside(std::size_t engine) {
  const GradMode enabled(pass_.autograd(), true);
  if (engine == 0) model_of(pass_, 0).arm({.expert = inputs_.next_expert()});
  const Tensor loss = pass_.target().forward(engine, inputs_.next()).at(0);
  record_loss(pass_, loss);
  pass_.target().backward(engine, loss, {});
}

// Nothing of it is anybody's gradient.
void BackwardHook::differentiate_aside(bool fails) {
  const TensorList inputs = fails ? inputs_.next() : TensorList();
  if (!engines_) return;
  const GradMode enabled(pass_.autograd(), true);
  try {
    if (fails && spec_.engines == 2) {
      const Tensor loss = pass_.target().forward(1, inputs).at(0);
      pass_.target().backward(1, raising(pass_.autograd(), loss), {});
      return;
    }
    Tensor leaf = Tensor::full({}, 1.0, DType::float32);
    leaf.set_requires_grad(true);
    const Tensor loss = mul(pass_.autograd(), leaf, 2.0);
    pass_.autograd().backward(fails ? raising(pass_.autograd(), loss) : loss, {});
  } catch (const Injected&) {
  }
}

// It has begun by then; what it has brought is dropped by hand, as long as the first one runs.
void BackwardHook::break_second(int call) {
  const TensorList inputs = inputs_.next();
  if (!engines_) return;
  const GradMode enabled(pass_.autograd(), true);
  model_of(pass_, 1).arm({.aborts = call, .expert = inputs_.next_expert()});
  try {
    pass_.target().backward(1, pass_.target().forward(1, inputs).at(0), {});
  } catch (const Injected&) {
    engines_->engine(1).zero_grad();
  }
}

bool BackwardHook::refuses_step(const MicroSpec& micro) {
  const EngineErrorId id =
      micro.block != 0 ? EngineErrorId::step_inside_no_sync : EngineErrorId::incomplete_backward;
  return !engines_ || is_refused_with(id, [&] { engines_->engine(0).step(); });
}

}  // namespace zeroproof::train
