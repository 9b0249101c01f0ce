#include "props/train/window_checkpoints.h"

#include "props/train/window_records.h"

namespace zeroproof::train {

WindowCheckpoints::WindowCheckpoints(const WindowContext& window)
    : spec_(window.spec), pass_(window.pass), engines_(window.engines) {}

int WindowCheckpoints::take_over() {
  if (!engines_) return 0;
  CheckpointUse checkpoints(spec_, pass_);
  checkpoints.load("");
  return checkpoints.faults();
}

void WindowCheckpoints::record_faults(int faults) {
  record_number(pass_, "faults of checkpoints", static_cast<double>(faults));
}

void WindowCheckpoints::restore(const MicroSpec& first, const TrainLost& train) {
  if (!loads_away(static_cast<Restores>(first.restores))) return;
  const Restored restored = engines_ ? train_and_load(first, train) : Restored();
  record_faults(restored.faults);
  if (first.renews != 0)
    record_number(pass_, "bytes that an engine leaves", static_cast<double>(restored.left_bytes));
}

WindowCheckpoints::Restored WindowCheckpoints::train_and_load(const MicroSpec& first,
                                                              const TrainLost& train) {
  const auto restores = static_cast<Restores>(first.restores);
  Restored restored;
  // Another tag, which is saved more often, is how it begins.
  const bool is_tagged = restores == Restores::tagged;
  const std::string tag = is_tagged ? "later-kept" : "";
  CheckpointUse checkpoints(spec_, pass_);
  checkpoints.save(tag);
  checkpoints.litter();
  Pass lost = pass_;
  const bool is_blind = first.blind != 0;
  const bool collects = is_blind && engines_->collect_values(false);
  train(lost, restores != Restores::unstepped);
  if (collects) engines_->collect_values(true);
  if (is_tagged) {
    for (int i = 0; i < 3; ++i) checkpoints.save("later");
  }
  engines_->take_values();
  if (first.renews != 0) restored.left_bytes = engines_->renew();
  if (!is_blind || spec_.stage < 3) overwrite_weights();
  checkpoints.load(tag);
  if (is_tagged) load_latest(checkpoints);
  restored.faults = checkpoints.faults();
  return restored;
}

// What was saved last is the latest, though its tag is an older one.
void WindowCheckpoints::load_latest(CheckpointUse& checkpoints) {
  checkpoints.save("later-kept");
  checkpoints.load("");
}

void WindowCheckpoints::age_scaler() {
  if (spec_.grown == 0) return;
  use([&](CheckpointUse& checkpoints) { checkpoints.age_scaler(spec_.grown); });
}

void WindowCheckpoints::try_out(const MicroSpec& micro) {
  if (static_cast<Restores>(micro.restores) < Restores::saved) return;
  use([&](CheckpointUse& checkpoints) { checkpoints.try_out(micro); });
}

void WindowCheckpoints::save_inside() {
  use([](CheckpointUse& checkpoints) { checkpoints.save("kept"); });
}

void WindowCheckpoints::save_last() {
  use([](CheckpointUse& checkpoints) { checkpoints.save(""); });
}

void WindowCheckpoints::use(const std::function<void(CheckpointUse& checkpoints)>& use) {
  int faults = 0;
  if (engines_) {
    CheckpointUse checkpoints(spec_, pass_);
    use(checkpoints);
    faults = checkpoints.faults();
  }
  record_faults(faults);
}

// A load brings back whatever the user did meanwhile.
void WindowCheckpoints::overwrite_weights() {
  for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec_.engines); ++engine) {
    TensorList weights;
    for (const nn::NamedParameter& named : pass_.target().module(engine).named_parameters())
      weights.push_back(named.tensor);
    if (spec_.stage < 3) {
      fill(weights, 0.5);
    } else {
      engines_->engine(engine).gathered_parameters(weights, 0, [&] {
        if (pass_.target().rank() == 0) fill(weights, 0.5);
      });
    }
  }
}

void WindowCheckpoints::fill(const TensorList& tensors, double value) {
  for (const Tensor& tensor : tensors)
    pass_.autograd().ops().copy_in_place(tensor.detach(),
                                         Tensor::full(tensor.sizes(), value, tensor.dtype()));
}

}  // namespace zeroproof::train
