#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/schedule/learning_rates.h"
#include "model/optim/adam.h"
#include "props/interpreter/observation.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/internal/model/ops.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::reference {

// How many ranks train what.
struct Replicas {
  int ranks = 1;     // of different data
  int tensor = 1;    // of each, whose norms add up
  int sequence = 1;  // that share a loss, whose parts add up
};

// A trained parameter of a whole engine.
struct WholeParameter {
  std::string name;
  Tensor parameter;
  DType communication_dtype = DType::float32;
  Tensor master;
  optim::Adam::State adam = {};
  Tensor momentum_buffer = {};
  std::int64_t steps = 0;
  std::size_t group = 0;
};

// What a whole engine goes on from: everything but the gradients of the window. Plain data; its
// tensors are its own.
struct WholeState {
  std::vector<WholeParameter> parameters;
  std::vector<std::vector<double>> weights = {};  // of the module, the trained ones too
  LearningRates rates;
  double scale = 1.0;
  std::int64_t micro_steps = 0;
  std::int64_t global_steps = 0;
  std::int64_t skipped_steps = 0;
  std::int64_t global_samples = 0;
  std::int64_t iteration = 0;
  std::int64_t last_overflow = -1;
  std::int64_t hysteresis = 1;
  std::int64_t good_steps = 0;
};

// One rank's model with everything at hand: whole parameters, masters, optimizer state, loss scale.
// The sums of all ranks are formed here, in the order that engines document: rank by rank, every
// partial sum rounded to the communication dtype (docs/spec/zero/precision.md).
class WholeEngine {
 public:
  struct Options {
    Replicas replicas = {};
    std::size_t groups = 1;
    bool lists_frozen = false;
    std::vector<std::string> ungrouped = {};  // prefixes of parameters that no group lists
    std::optional<double> loss_scale = std::nullopt;
    int grows_in = 0;
  };

  // Both must outlive it. Converts the parameters to the model's dtype.
  WholeEngine(nn::Module& module, const ZeroConfig& config, const Ops& ops, const Options& options);

  const ZeroConfig& config() const { return config_; }
  nn::Module& module() const { return *module_; }
  double loss_scale() const { return state_.scale; }
  bool needs_scaler() const;
  bool moves_scale() const;  // by overflows, and steps without one
  void override_loss_scale(double loss_scale);
  LearningRates& rates() { return state_.rates; }

  // Local sums: an entry a trained parameter, undefined where there is none.
  // Adds what .grad holds, times `factor`, to `sums`, in the accumulation dtype, and takes it away;
  // whether there was any.
  bool collect(TensorList& sums, double factor) const;
  void clear_grads() const;
  // Copies of every .grad; set_grads() puts them back, or clears .grad for an empty list.
  TensorList grads() const;
  void set_grads(const TensorList& grads) const;

  // One reduction: the local sums of every rank, in their order. Joins the window.
  void reduce(const std::vector<TensorList>& of_ranks);
  void drop_window() { window_.assign(window_.size(), Tensor()); }
  // Of the window, unscaled.
  std::vector<FullTensor> gradients();
  StepOutcome step();
  void count_micro_steps(std::int64_t steps) { state_.micro_steps += steps; }
  void count_step(const StepOutcome& outcome, std::int64_t micro_batches);

  std::vector<FullTensor> masters() const;
  std::vector<FullTensor> optimizer_state() const;
  std::vector<FullTensor> weights() const;  // as forwards use them
  // A parameter as the wire brings it, where it is gathered.
  Tensor gathered(const Tensor& parameter) const;
  std::vector<double> counters() const;  // steps, samples, loss scale

  WholeState save() const;
  void load(const WholeState& state);

 private:
  bool has_grad_scaler() const;
  void add_parameters(const Options& options);
  DType communication_dtype_of(const Tensor& parameter) const;
  Tensor reduced(const WholeParameter& trained, const TensorList& of_ranks) const;
  bool sums_in_float32() const;
  void fill_window();
  bool overflows() const;
  void update_scale(bool has_overflow);
  void update_grad_scaler(bool has_overflow);
  double norm() const;
  void update(WholeParameter& trained, const Tensor& gradient, double factor);

  nn::Module* module_;
  ZeroConfig config_;
  const Ops* ops_;
  Replicas replicas_;
  double divisor_ = 1.0;
  WholeState state_;
  TensorList window_;  // reduced gradients so far, one a trained parameter
  bool is_scale_given_ = false;
};

}  // namespace zeroproof::reference
