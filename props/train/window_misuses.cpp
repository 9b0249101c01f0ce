#include "props/train/window_misuses.h"

#include <string>

#include "props/train/case_saves.h"
#include "props/train/misuse.h"
#include "props/train/user_gradients.h"
#include "props/train/window_records.h"

namespace zeroproof::train {

WindowMisuses::WindowMisuses(const WindowContext& window, WindowInputs& inputs,
                             WindowForwards& forwards)
    : window_(window), inputs_(inputs), forwards_(forwards) {}

void WindowMisuses::run(Misuse misuse) {
  bool is_right = true;
  record_seen(window_);
  if (misuse == Misuse::unfed_leaf) {
    is_right = refuses_unfed_leaf();
  } else if (misuse == Misuse::unscaled_second) {
    is_right = refuses_unscaled_second();
  } else if (misuse == Misuse::past_manual) {
    is_right = refuses_past_manual();
  } else if (misuse == Misuse::others_loss) {
    is_right = refuses_others_loss();
  } else if (window_.engines) {
    is_right = is_refused(window_.engines->engine(0), window_.spec, misuse, [&] {
      window_.pass.target().tensor_backward({forwards_.run(MicroSpec()).front()}, {}, false);
    });
  } else if (is_manual_misuse(misuse)) {
    forwards_.run(MicroSpec());
  }
  forget_seen(window_);
  record_refusal(window_.pass, std::to_string(static_cast<int>(misuse)), is_right);
}

void WindowMisuses::run_and_clear(Misuse misuse) {
  run(misuse);
  if (misuse == Misuse::unfed_leaf || misuse == Misuse::unscaled_second)
    clear_gradients(window_.spec, window_.pass);
}

// What the first engine has got by then is taken back.
bool WindowMisuses::refuses_unscaled_second() {
  const TensorList losses = forwards_.run_unscaled();
  if (!window_.engines) return true;
  return is_refused_with(EngineErrorId::backward_without_loss_scaling,
                         [&] { window_.engines->engine(0).backward(losses.front()); });
}

// Whose backward runs has nothing to do with the engine that the loss came from.
bool WindowMisuses::refuses_others_loss() {
  const Tensor loss = forwards_.run(MicroSpec()).front();
  if (!window_.engines) return true;
  return is_refused_with(EngineErrorId::manual_backward_unsupported,
                         [&] { window_.engines->engine(1).backward(loss); });
}

// The engine sees it by its gradients alone.
bool WindowMisuses::refuses_past_manual() {
  Pass& pass = window_.pass;
  const TensorList inputs = window_.pass.next_inputs();
  if (!window_.engines) return true;
  return is_refused_with(EngineErrorId::manual_backward_unsupported, [&] {
    const Tensor loss = model_of(pass, 0).bypass(pass.autograd(), inputs);
    pass.target().tensor_backward({loss}, {}, false);
  });
}

// Its experts come first, and nothing that comes in needs a gradient. What a backward that failed
// has brought is taken back.
bool WindowMisuses::refuses_unfed_leaf() {
  const TensorList inputs = window_.pass.next_inputs();
  model_of(window_.pass, 0).arm({.expert = inputs_.next_expert()});
  if (!window_.engines) return true;
  Engine& engine = window_.engines->engine(0);
  const Tensor loss = engine.forward(inputs).at(0);
  return is_refused_with(EngineErrorId::gradient_of_wrong_size, [&] { engine.backward(loss); });
}

void WindowMisuses::misscale(int misscales) {
  const double loss_scale = wrong_loss_scale(misscales);
  record_refusal(window_.pass, "loss scale",
                 !window_.engines || refuses_loss_scale(*window_.engines, loss_scale));
}

bool refuses_rescale(const WindowContext& window) {
  return !window.engines ||
         is_refused(window.engines->engine(0), window.spec, Misuse::late_loss_scale, {});
}

}  // namespace zeroproof::train
