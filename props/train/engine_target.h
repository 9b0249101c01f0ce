#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "props/train/full_values.h"
#include "props/train/scenario.h"
#include "props/train/short_memory.h"
#include "props/train/train_target.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof::train {

// No engine can be made from the configuration; the text begins with the error id, if it has one.
struct ConfigurationRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The groups that an engine of the scenario gets; empty: one of all that require gradients.
std::vector<TensorList> parameter_groups_of(const nn::Module& module,
                                            const TrainScenario& scenario);

// Sees the models of a rank before they are given to engines.
class ModelObserver : public ProgramWatch {
 public:
  virtual void on_model(Autograd& autograd, nn::Module& module, const std::string& prefix) = 0;
};

// The engines of one rank. Collects whole values around every step at a boundary, if asked to:
// those calls are collective.
class EngineTarget final : public TrainTarget {
 public:
  struct Options {
    bool collects_values = true;
    ModelObserver* models = nullptr;       // must outlive it; null for none
    AutogradObserver* autograd = nullptr;  // the same
    Chooser* order = nullptr;              // the same: of nodes, where several may run next
    std::function<void(bool begins)> on_collect = {};  // around the calls that only look
  };

  // References must outlive it. Throws ConfigurationRefused.
  EngineTarget(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
               const Options& options);

  Autograd& autograd() override { return autograd_; }
  int rank() const override { return runtime_.group(GroupKind::data).rank(); }
  int tensor_rank() const override { return runtime_.group(GroupKind::tensor).rank(); }
  nn::Module& module(std::size_t engine) override { return *modules_[engine]; }

  TensorList forward(std::size_t engine, const TensorList& inputs) override;
  Tensor backward(std::size_t engine, const Tensor& loss,
                  const BackwardArguments& arguments) override;
  void tensor_backward(const TensorList& roots, const TensorList& grads,
                       bool retain_graph) override;
  bool needs_scaler(std::size_t engine) override;
  Tensor scale(std::size_t engine, const Tensor& loss, bool retain_graph) override;
  void step(std::size_t engine) override;
  void step_early(std::size_t engine) override;
  bool try_step(std::size_t engine) override;
  void zero_grad(std::size_t engine) override;
  void coalesce(std::size_t engine, const std::function<void()>& body) override;
  void no_sync(std::size_t engine, const std::function<void()>& body) override;
  void set_boundary(std::size_t engine, bool is_boundary) override;
  void override_loss_scale(std::size_t engine, double loss_scale) override;
  std::vector<FullTensor> masters(std::size_t engine) override;
  void record(const std::string& name, const Tensor& value) override;

  Engine& engine(std::size_t index) { return *engines_[index]; }
  std::size_t engines() const { return engines_.size(); }
  // One more engine is made, of a model of its own, and goes. Whether that leaves the memory and
  // the autograd as they were, and a model that trains without it. Collective.
  bool receive_guest();
  // What one more engine of such a model is refused with, which begins with "changed: " where the
  // model is not as it was; empty: it is not refused, and gone again.
  std::string refusal_of_another(const ZeroConfig& config, std::optional<double> loss_scale);
  // No call that needs them may follow.
  void destroy_engines() { engines_.clear(); }
  bool has_engines() const { return !engines_.empty(); }
  // Another engine in place of the only one, with a model of its own. Returns what of the runtime's
  // memory the old ones left, in bytes, and one more where their linear function stays installed.
  std::int64_t renew();
  // Of the window since the last call.
  WindowValues take_values() { return std::exchange(values_, {}); }
  // Whether values are collected from now on; returns whether they were.
  bool collect_values(bool collects) { return std::exchange(options_.collects_values, collects); }
  // Of the first engine's parameters, behind its last step and before anything looked at them.
  std::int64_t whole_behind_step() const { return whole_behind_step_; }
  // Of the first engine's last step.
  const StepOutcome& last_outcome() const { return last_outcome_; }
  // Forgets what was recorded since there were so many: it is done again.
  std::size_t records() const { return values_.records.size(); }
  void forget_records(std::size_t kept) { values_.records.resize(kept); }
  // Of a case that runs out of memory; null for any other.
  ShortRuntime* short_runtime() { return short_.get(); }
  // The root of the first model uses the weight of that layer from now on.
  void register_at_root(int layer);
  // A tensor.backward() that threw had changed some .grad by then.
  bool has_changed_gradients() const { return has_changed_gradients_; }

 private:
  // What engines take of a rank.
  struct Footprint {
    std::int64_t device_bytes = 0;
    std::int64_t host_bytes = 0;
    bool has_linear = false;  // theirs is the process's linear function
    friend bool operator==(const Footprint&, const Footprint&) = default;
  };

  // One that its step() has to tell of.
  struct EarlyStep {
    std::size_t engine = 0;
    bool is_seen = false;
    std::vector<FullTensor> gradients;
    StepOutcome outcome;
  };

  Footprint footprint();
  std::shared_ptr<nn::Module> new_model(ModelKind kind, std::size_t index);
  void add_engine(ModelKind kind);
  void register_external();
  void register_weight(std::size_t engine, nn::Module& user, int layer);
  std::vector<std::vector<double>> gradients() const;
  StepOutcome take_step(std::size_t engine);
  void collect(const std::function<void()>& look);
  bool is_collected(std::size_t engine) const;
  EarlyStep take_and_see(std::size_t engine);
  std::vector<FullTensor> seen_gradients(std::size_t engine);
  void collect_counters(std::size_t engine);
  void collect_parameters(std::size_t engine);

  const TrainScenario& scenario_;
  const TrainCell& cell_;
  std::unique_ptr<ShortRuntime> short_;
  Runtime& runtime_;
  Options options_;
  ZeroConfig config_;
  Autograd autograd_;
  std::vector<std::shared_ptr<nn::Module>> modules_;
  std::vector<std::unique_ptr<Engine>> engines_;
  WindowValues values_;
  std::int64_t whole_behind_step_ = 0;
  StepOutcome last_outcome_;
  std::optional<EarlyStep> early_;
  bool has_changed_gradients_ = false;
};

}  // namespace zeroproof::train
