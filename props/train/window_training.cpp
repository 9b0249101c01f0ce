#include "props/train/window_training.h"

#include <utility>

#include "props/train/case_orders.h"
#include "props/train/case_turns.h"
#include "props/train/detour.h"
#include "props/train/user_block.h"
#include "props/train/user_calls.h"
#include "props/train/user_gradients.h"
#include "props/train/weight_visit.h"
#include "props/train/window_misuses.h"
#include "props/train/window_records.h"

namespace zeroproof::train {

WindowTraining::WindowTraining(const WindowContext& window, WindowForwards& forwards,
                               WindowBackwards& backwards)
    : spec_(window.spec),
      pass_(window.pass),
      window_(window),
      forwards_(forwards),
      backwards_(backwards) {}

void WindowTraining::in_block(const MicroSpec& micro) {
  const auto block = static_cast<Block>(micro.block);
  if (block == Block::no_sync_first) {
    run_in_block(pass_.target(), spec_, micro, [&] { once(micro); });
    return once(micro);
  }
  const bool has_forward = block == Block::no_sync_forward;
  if (!has_forward && block != Block::coalesced_backwards && block != Block::no_sync_backwards)
    return run_in_block(pass_.target(), spec_, micro, [&] { train_body(micro); });
  TensorList losses;
  const auto run_forward = [&] { losses = first_forward(micro); };
  const auto run_backwards = [&] { backwards_.run(micro, losses); };
  if (!has_forward) run_forward();
  run_in_block(pass_.target(), spec_, micro,
               [&] { has_forward ? run_forward() : run_backwards(); });
  if (has_forward) run_backwards();
}

void WindowTraining::train_body(const MicroSpec& micro) {
  if (!window_.is_lost) take_detour_at(spec_, pass_, micro, DetourPlace::block);
  if (micro.clears == 2) {
    once(micro);
    clear_gradients(spec_, pass_);
  }
  once(micro);
  if (micro.aborts_inside != 0) abort_inside(micro);
  if (micro.repeats != 0) once(micro);
  if (micro.asks == 2) ask_for_gradients(spec_, pass_, true);
}

void WindowTraining::once(const MicroSpec& micro) {
  train_first(micro);
  if (spec_.takes_turns != 0) train_second_engine(micro);
}

void WindowTraining::train_first(const MicroSpec& micro) {
  if (micro.branches != 0) return train_branches(micro);
  TensorList first = first_forward(micro);
  if (micro.rehooks != 0) make_hooks_anew();
  if (micro.rescales == 3)
    record_refusal(pass_, "loss scale before a backward", refuses_rescale(window_));
  backwards_.look(micro, Looks::before_backward);
  if (micro.outstanding == 0 || is_ahead(micro)) return backwards_.run(micro, first);
  train_two(micro, std::move(first));
}

void WindowTraining::train_second_engine(const MicroSpec& micro) {
  pass_.differentiate(forwards_.run_second(micro), false, 1);
}

// It may have come before the last step.
TensorList WindowTraining::first_forward(const MicroSpec& micro) {
  return ahead_.empty() ? forwards_.run(micro) : std::exchange(ahead_, {});
}

void WindowTraining::run_ahead(const MicroSpec& next) {
  ahead_ = forwards_.run(next);
}

// What two graphs of stage 3 keep has room for one; the one between them is over.
void WindowTraining::train_three(const MicroSpec& micro, TensorList first) {
  backwards_.run_one(micro, first.at(0), true);
  {
    const TensorList second = forwards_.run(micro);
    backwards_.run_one(micro, second.at(1), true);
    backwards_.run_one(micro, second.at(0), false);
  }
  TensorList third = forwards_.run(micro);
  backwards_.run_one(micro, third.at(1), true);
  record_kept(window_, [&] {
    first.clear();
    third.clear();
  });
}

void WindowTraining::train_two(const MicroSpec& micro, TensorList first) {
  const auto outstanding = static_cast<Outstanding>(micro.outstanding);
  if (outstanding == Outstanding::three) return train_three(micro, std::move(first));
  TensorList second = forwards_.run(micro);
  if (outstanding == Outstanding::summed) return backwards_.run_summed(micro, first, second);
  if (micro.drops_on != 0) return backwards_.run_dropping(micro, std::move(first), second);
  backwards_.look(micro, Looks::before_backward);
  if (outstanding == Outstanding::interleaved)
    return backwards_.run_interleaved(micro, first, std::move(second));
  const bool is_reversed = outstanding == Outstanding::reversed;
  backwards_.run(micro, is_reversed ? second : first);
  backwards_.look(micro, Looks::between);
  backwards_.run(micro, is_reversed ? first : second);
}

// What the first branch alone has used goes with its backward, though the other one's is to come.
void WindowTraining::train_branches(const MicroSpec& micro) {
  const TensorList first = forwards_.run(branch_of(spec_, micro, 0));
  const TensorList second = forwards_.run(branch_of(spec_, micro, 1));
  backwards_.run(micro, first);
  const int alone = branch_of(spec_, micro, 1).skips - 1;
  record_number(pass_, "bytes of a branch that is over",
                static_cast<double>(whole_elements_of_call(spec_, pass_, alone)));
  backwards_.run(micro, second);
}

// A backward between two good ones fails, and the user goes on in the same block.
void WindowTraining::abort_inside(const MicroSpec& micro) {
  MicroSpec failing = micro;
  failing.outstanding = failing.keeps = failing.detour = failing.rescales = 0;
  forwards_.set_failure({.aborts = micro.aborts_inside});
  try {
    once(failing);
  } catch (const Injected&) {
  }
  forwards_.set_failure({});
}

// As whoever takes them off to generate, and puts them on again.
void WindowTraining::make_hooks_anew() {
  if (!window_.engines) return;
  for (const nn::NamedModule& module : window_.engines->module(0).named_modules())
    if (module.name == GeneratedModel::kExperts)
      window_.engines->engine(0).set_leaf_module(*module.module);
}

}  // namespace zeroproof::train
