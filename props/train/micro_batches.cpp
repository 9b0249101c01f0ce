#include "props/train/micro_batches.h"

#include "props/train/case_turns.h"
#include "props/train/detour.h"
#include "props/train/engine_transforms.h"
#include "props/train/step_settings.h"
#include "props/train/user_calls.h"
#include "props/train/user_gradients.h"
#include "props/train/weight_visit.h"
#include "props/train/window_records.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof::train {

MicroBatches::MicroBatches(const WindowContext& window, WindowCheckpoints& checkpoints)
    : spec_(window.spec),
      pass_(window.pass),
      window_(window),
      inputs_(window),
      repeated_(window, inputs_),
      hook_(window, inputs_, checkpoints),
      forwards_(window, {.inputs = inputs_, .repeated = repeated_, .hook = hook_}),
      backwards_(window, repeated_),
      misuses_(window, inputs_, forwards_),
      training_(window, forwards_, backwards_) {}

void MicroBatches::run(std::size_t at) {
  const MicroSpec& micro = spec_.micros.at(at);
  if (micro.rests != 0) return;
  prepare(micro);
  if (micro.freezes != 0) model_of(pass_, 0).set_layer_trained(micro.freezes - 1, false);
  run_idly(micro, at);
  fail(micro, at);
  train(micro, at);
  if (micro.freezes != 0) model_of(pass_, 0).set_layer_trained(micro.freezes - 1, true);
  ask(micro, at);
  if (micro.misuse != 0) misuses_.run_and_clear(static_cast<Misuse>(micro.misuse));
}

void MicroBatches::run_ahead(std::size_t at) {
  training_.run_ahead(spec_.micros.at(at));
}

// What the user does to engines before anything runs.
void MicroBatches::prepare(const MicroSpec& micro) {
  if (micro.litters != 0) litter_gradients(spec_, pass_);
  if (micro.guests != 0)
    record_refusal(pass_, "leftovers of an engine",
                   !window_.engines || window_.engines->receive_guest());
  if (!window_.is_lost) take_detour_at(spec_, pass_, micro, DetourPlace::context);
  if (micro.registers != 0 && window_.engines)
    window_.engines->register_at_root(micro.registers - 1);
  if (micro.misscales != 0 && !window_.is_lost) misuses_.misscale(micro.misscales);
}

// What is nobody's training: forwards without a backward, and looks at the weights.
void MicroBatches::run_idly(const MicroSpec& micro, std::size_t at) {
  if (micro.idles_first != 0) evaluate(micro, at);
  if (micro.abandons != 2) visit(micro, at);
  if (micro.guards != 0) evaluate_guards(pass_);
  if (micro.abandons != 0) abandon_forward(micro);
  if (micro.idle_forward == 1 && micro.idles_first == 0) evaluate(micro, at);
  if (micro.idle_forward == 2) forwards_.run(micro);
  if (micro.idle_forward >= 3) {
    forwards_.arm(micro);
    transform_engine(micro, pass_);
  }
}

// What throws, or is trained for nothing.
void MicroBatches::fail(const MicroSpec& micro, std::size_t at) {
  if (micro.throws != 0) throw_one(micro);
  if (micro.outdates != 0) {
    outdate_one();
  } else if (micro.aborts + micro.aborts_on_loss != 0) {
    abort_one(micro, at);
  }
  if (micro.rescales == 2 && !window_.is_lost) change_loss_scale(spec_, pass_);
  if (micro.clears != 1) return;
  training_.once(micro);
  clear_gradients(spec_, pass_);
  if (micro.rescales == 1 && !window_.is_lost) change_loss_scale(spec_, pass_);
}

void MicroBatches::train(const MicroSpec& micro, std::size_t at) {
  forwards_.set_interrupted(!window_.is_lost);
  if (micro.past_engine != 3)
    repeated_.until_it_fits(
        {.at = at, .in = {Shortage::forward, Shortage::backward, Shortage::epilogue}},
        [&] { training_.in_block(micro); });
  forwards_.set_interrupted(false);
  hook_.undo_changes();
  is_retained_ = is_retained_ || micro.keeps == 1 || micro.creates != 0;
  if (micro.keeps >= 2 && !is_retained_) record_whole(window_, whole_elements(pass_));
  if (micro.past_engine != 0) backwards_.run_past_engine(checkpoints_past_engine(micro));
}

void MicroBatches::evaluate(const MicroSpec& micro, std::size_t at) {
  repeated_.until_it_fits({.at = at, .in = {Shortage::evaluation}}, [&] {
    const GradMode disabled(pass_.autograd(), false);
    forwards_.run(micro);
  });
}

void MicroBatches::visit(const MicroSpec& micro, std::size_t at) {
  repeated_.until_it_fits({.at = at, .in = {Shortage::gathers}}, [&] {
    const RepeatedCalls::Armed armed(repeated_, {Shortage::gathers});
    visit_once(micro);
  });
}

void MicroBatches::visit_once(const MicroSpec& micro) {
  const auto gathers = static_cast<Gathers>(micro.gathers);
  if (!runs_in_context(micro)) return visit_weights(spec_, pass_, gathers);
  visit_with_forward(spec_, pass_, gathers, [&] {
    const GradMode disabled(pass_.autograd(), false);
    forwards_.run_plainly(micro);
  });
}

// A forward that gets no backward, and whose weights are given up.
void MicroBatches::abandon_forward(const MicroSpec& micro) {
  forwards_.run(micro);
  if (micro.abandons == 2) visit_weights(spec_, pass_, static_cast<Gathers>(micro.gathers));
  if (window_.engines) window_.engines->engine(0).release_gathered_parameters();
  record_number(pass_, "elements of what is given up", static_cast<double>(whole_elements(pass_)));
}

void MicroBatches::throw_one(const MicroSpec& micro) {
  forwards_.set_failure({.throws = micro.throws});
  try {
    const GradMode mode(pass_.autograd(), micro.throws_no_grad == 0);
    forwards_.run(micro);
  } catch (const Injected&) {
  }
  forwards_.set_failure({});
}

// Between a forward and its backward somebody writes to the weights that the graph has kept.
void MicroBatches::outdate_one() {
  const TensorList losses = forwards_.run(MicroSpec());
  rewrite_weights(spec_, pass_);
  bool is_refused = !window_.engines;
  try {
    if (window_.engines) backwards_.run_one(MicroSpec(), losses.front(), false);
  } catch (const AutogradError&) {
    is_refused = true;
  }
  forget_seen(window_);
  clear_gradients(spec_, pass_);
  record_refusal(pass_, "outdated weights", is_refused);
}

void MicroBatches::abort_one(const MicroSpec& micro, std::size_t at) {
  MicroSpec failing = micro;
  failing.outstanding = failing.rescales = 0;
  forwards_.set_failure({.aborts = micro.aborts, .is_at_weight = micro.aborts_at_weight != 0});
  backwards_.set_failure({.is_on_loss = micro.aborts_on_loss != 0,
                          .is_managed = micro.aborts_managed != 0 && micro.aborts != 0});
  try {
    training_.once(failing);
  } catch (const Injected&) {
    // What would need kept weights cannot run any more.
    if (micro.keeps == 1 || micro.keeps == 2) record_whole(window_, whole_elements(pass_));
  }
  forwards_.set_failure({});
  backwards_.set_failure({});
  if (micro.aborts_on_loss == 2) misuses_.run(Misuse::unscaled_manual);
  const bool is_inside = at % static_cast<std::size_t>(spec_.accumulation) != 0;
  const bool has_gradients = micro.is_uncleared != 0 && is_inside;
  if (has_gradients && static_cast<Misuse>(micro.misuse) == Misuse::late_loss_scale)
    misuses_.run(Misuse::late_loss_scale);
  // Otherwise nothing of it stays either.
  if (micro.is_uncleared == 0) clear_gradients(spec_, pass_);
}

// What the user reads behind a micro-batch. Reading changes nothing, wherever in a window it is.
void MicroBatches::ask(const MicroSpec& micro, std::size_t at) {
  repeated_.until_it_fits({.at = at, .in = {Shortage::getters}}, [&] {
    const RepeatedCalls::Armed armed(repeated_, {Shortage::getters});
    if (micro.peeks != 0) record_masters(pass_);
    if (micro.asks == 1) ask_for_gradients(spec_, pass_, knows_gradients(spec_));
  });
}

}  // namespace zeroproof::train
