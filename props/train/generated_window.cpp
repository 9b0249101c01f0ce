#include "props/train/generated_window.h"

#include <cstdint>
#include <vector>

#include "props/train/case_ends.h"
#include "props/train/case_orders.h"
#include "props/train/case_turns.h"
#include "props/train/case_worlds.h"
#include "props/train/config_use.h"
#include "props/train/step_settings.h"
#include "props/train/user_gradients.h"
#include "props/train/window_records.h"

namespace zeroproof::train {

GeneratedWindow::GeneratedWindow(const CaseSpec& spec, Pass& pass, bool is_lost)
    : spec_(spec),
      pass_(pass),
      window_(context_of(spec, pass, is_lost)),
      checkpoints_(window_),
      micros_(window_, checkpoints_) {}

void GeneratedWindow::run() {
  const std::int64_t before = live_bytes(window_, Placement::device);
  const int faults = is_taken_over() ? checkpoints_.take_over() : 0;
  checkpoints_.restore(spec_.micros.at(first_micro()), [&](Pass& lost, bool ends) {
    GeneratedWindow(spec_, lost, true).train(ends);
  });
  if (pass_.step_number() == 0) checkpoints_.age_scaler();
  if (is_taken_over()) checkpoints_.record_faults(faults);
  if (pass_.step_number() == 0) read_configuration(spec_, pass_);
  train(true);
  if (pass_.step_number() == 0) {
    if (spec_.first_ranks != 0) checkpoints_.save_last();
    record_bytes(window_, live_bytes(window_, Placement::device) - before);
  }
  record_offloaded(window_);
  if (spec_.reorders != 0 && pass_.step_number() + 1 == spec_.windows()) run_in_another_order();
}

void GeneratedWindow::train(bool ends) {
  const auto accumulation = static_cast<std::size_t>(spec_.accumulation);
  std::vector<std::int64_t> bytes_behind;  // its micro-batches
  set_loss_scale(spec_, pass_);
  for (std::size_t i = 0; i < accumulation; ++i) {
    const std::size_t at = first_micro() + i;
    const MicroSpec& micro = spec_.micros.at(at);
    if (!window_.is_lost) checkpoints_.try_out(micro);
    set_boundary(spec_, pass_, i);
    record_boundary(spec_, pass_, i);
    micros_.run(at);
    if (is_ahead(micro)) micros_.run_ahead(at + 1);
    bytes_behind.push_back(live_bytes(window_, Placement::device));
    const bool is_boundary = i + 1 == accumulation;
    if ((spec_.is_unmanaged == 0 || is_boundary) && (ends || !is_boundary)) step(is_boundary);
    record_seen(window_);
    const bool has_stepped = is_boundary && ends;
    if (spec_.is_unmanaged == 0 ? ends || !is_boundary : has_stepped)
      record_boundary_behind(spec_, pass_, i);
    if (has_stepped && micro.asks == 3) record_gradients_behind(window_);
    if (has_stepped && spec_.stage < 3) record_left_out(spec_, pass_);
    forget_left_out(spec_, pass_);
  }
  if (spec_.stage == 2 && !window_.is_lost) record_between(window_, first_micro(), bytes_behind);
  if (ends && micros_.has_kept())
    record_whole(window_, window_.engines ? window_.engines->whole_behind_step() : 0);
  micros_.release_kept();
}

// What a step misses comes, and then it is taken.
void GeneratedWindow::step(bool is_boundary) {
  const bool is_at_floor = is_boundary && ends_refused(spec_, first_micro());
  const bool misses_some = is_boundary && spec_.needs_all != 0;
  if (!is_at_floor && !misses_some) {
    pass_.step();
    return is_boundary ? void() : record_idle_step(window_);
  }
  const bool asks = !is_at_floor || window_.engines;
  const bool is_taken = asks && pass_.target().try_step(0);
  record_refusal(pass_, "step", !is_taken);
  if (is_taken) return;
  // One that is refused for the loss scale changes nothing: the window is given up, and made
  // without the overflow.
  if (is_at_floor) clear_gradients(spec_, pass_);
  micros_.run_plain();
  pass_.step();
}

// Whatever order was recorded, it is given up, then this one is recorded, and compared.
void GeneratedWindow::run_in_another_order() {
  if (!window_.engines) return;
  const GradMode disabled(pass_.autograd(), false);
  const DType dtype = model_dtype(static_cast<Precision>(spec_.precision));
  const TensorList inputs = {Tensor::full({2}, 0.0, dtype), Tensor::full({}, 1.0, dtype)};
  for (const std::vector<std::size_t>& asides : orders_of_asides(spec_, pass_.target().rank())) {
    model_of(pass_, 0).arm({.asides = asides});
    pass_.target().forward(0, inputs);
  }
}

std::size_t GeneratedWindow::first_micro() const {
  return static_cast<std::size_t>(pass_.step_number() * spec_.accumulation);
}

// By ranks that have not trained what comes before.
bool GeneratedWindow::is_taken_over() const {
  return spec_.first_ranks != 0 && pass_.step_number() == windows_elsewhere(pass_.scenario());
}

}  // namespace zeroproof::train
