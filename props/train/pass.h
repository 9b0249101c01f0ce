#pragma once

#include <cstdint>
#include <string>

#include "model/baseline/exact_data.h"
#include "props/train/train_cell.h"
#include "props/train/train_target.h"

namespace zeroproof::train {

struct TrainScenario;

// One window of a scenario on one rank: its inputs, and the calls that programs share. Equal on
// all targets. Not thread-safe.
class Pass {
 public:
  // All references must outlive it. `step` counts from 0.
  Pass(const TrainScenario& scenario, const TrainCell& cell, TrainTarget& target,
       std::int64_t step);

  const TrainScenario& scenario() const { return scenario_; }
  TrainTarget& target() { return target_; }
  Autograd& autograd() { return target_.autograd(); }
  DataMode data() const { return cell_.data; }
  std::int64_t step_number() const { return step_; }

  // Of the next forward of this window: {x}, {rows}, or with exact data {h, c}, {rows, c}.
  TensorList next_inputs();
  // The same for each of several examples, stacked along a new first dimension.
  TensorList next_batch(std::int64_t examples);

  // The first output of an engine for the next inputs: the loss, for most models.
  Tensor forward(std::size_t engine = 0);
  Tensor loss_of(const TensorList& outputs);

  // engine.backward of the engine, or scale() where it is needed and tensor.backward.
  void differentiate(const Tensor& loss, bool retain_graph = false, std::size_t engine = 0);
  bool is_manual() const { return cell_.backward == BackwardKind::tensor; }
  void step();  // all engines

 private:
  TensorList inputs_of(std::int64_t forward);

  const TrainScenario& scenario_;
  const TrainCell& cell_;
  TrainTarget& target_;
  std::int64_t step_;
  std::int64_t next_forward_ = 0;
};

// The exact gradients of a cell: those of all forwards of a window on all ranks.
baseline::ExactData exact_data_of(const TrainScenario& scenario, const TrainCell& cell);

}  // namespace zeroproof::train
