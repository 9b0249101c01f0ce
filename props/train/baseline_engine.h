#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/schedule/learning_rates.h"
#include "model/optim/adam.h"
#include "props/train/full_values.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/internal/model/ops.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::train {

// One model of the baseline with everything at hand: parameters, whole float32 masters, optimizer
// state, loss scale. Gradients come rank by rank; their sum is formed here, in the order in which
// an engine documents it: in rank order, every partial sum rounded to the communication dtype.
class BaselineEngine {
 public:
  // `ops` must outlive it. Converts the parameters of `module` to the model's dtype. Does not train
  // what `spec` leaves out of all parameter groups; null: none. The rest is dealt to `groups`.
  BaselineEngine(std::shared_ptr<nn::Module> module, const ZeroConfig& config, const Ops& ops,
                 int world_size);

  nn::Module& module() const { return *module_; }
  const ZeroConfig& config() const { return config_; }
  std::size_t trained() const { return trained_.size(); }  // parameters
  std::int64_t elements(std::size_t trained) const { return trained_[trained].parameter.numel(); }
  const std::string& name(std::size_t trained) const { return trained_[trained].name; }
  Shape sizes(std::size_t trained) const { return trained_[trained].parameter.sizes(); }
  double loss_scale() const { return scale_; }
  bool needs_scaler() const;  // for a manual backward

  // Local sums of one rank, one entry a trained parameter; undefined where there is none.
  using LocalSums = TensorList;
  // Adds what .grad holds to `sums`, in the accumulation dtype, and takes it away.
  void collect(LocalSums& sums) const;
  void clear_grads() const;
  void scale_grads(double factor) const;

  // One reduction: the local sums of every rank, in their order. Joins the window.
  void reduce(const std::vector<LocalSums>& ranks);
  struct WindowCounts {
    std::int64_t micro_steps = 0;
    std::int64_t backwards = 0;
  };
  // The update at the end of such a window; appends to `values` under `prefix`.
  void step(const std::string& prefix, const WindowCounts& window, WindowValues& values);
  StepOutcome step();
  std::vector<FullTensor> full_parameters() const;  // the masters
  void drop_window() { window_.assign(window_.size(), Tensor()); }

 private:
  bool has_grad_scaler() const;

  struct Trained {
    std::string name;
    Tensor parameter;
    DType communication_dtype;
    Tensor master;
    optim::Adam::State adam;
    Tensor momentum_buffer;
    std::int64_t steps = 0;
  };

  void add_trained();
  DType communication_dtype_of(const Tensor& parameter) const;
  Tensor gathered(const Tensor& parameter) const;
  Tensor reduced(const Trained& trained, const TensorList& of_ranks) const;
  bool divides_first() const { return config_.stage != 0; }
  void fill_window();
  bool overflows() const;
  void update_scale(bool has_overflow);
  void update_grad_scaler(bool has_overflow);
  double norm() const;
  void update(Trained& trained, const Tensor& gradient, double factor);
  void count(const StepOutcome& outcome, const WindowCounts& window);
  void append_state(const Trained& trained, const std::string& prefix, WindowValues& values) const;

  std::shared_ptr<nn::Module> module_;
  ZeroConfig config_;
  const Ops& ops_;
  int world_size_;
  double divisor_ = 1.0;
  std::vector<Trained> trained_;
  LearningRates rates_;
  TensorList window_;  // reduced gradients so far, one a trained parameter
  double scale_ = 1.0;
  StepCounters counters_;
  std::int64_t iteration_ = 0;
  std::int64_t last_overflow_ = -1;
  std::int64_t hysteresis_ = 1;
  std::int64_t good_steps_ = 0;  // of a GradScaler, since it moved
};

}  // namespace zeroproof::train
