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
#include "props/train/train_target.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof::train {

// No engine can be made from the configuration; the text begins with the error id, if it has one.
struct ConfigurationRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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
  nn::Module& module(std::size_t engine) override { return *modules_[engine]; }

  TensorList forward(std::size_t engine, const TensorList& inputs) override;
  Tensor backward(std::size_t engine, const Tensor& loss,
                  const BackwardArguments& arguments) override;
  void tensor_backward(const TensorList& roots, const TensorList& grads,
                       bool retain_graph) override;
  bool needs_scaler(std::size_t engine) override;
  Tensor scale(std::size_t engine, const Tensor& loss, bool retain_graph) override;
  void step(std::size_t engine) override;
  void zero_grad(std::size_t engine) override;
  void coalesce(std::size_t engine, const std::function<void()>& body) override;
  void set_boundary(std::size_t engine, bool is_boundary) override;
  void record(const std::string& name, const Tensor& value) override;

  Engine& engine(std::size_t index) { return *engines_[index]; }
  std::size_t engines() const { return engines_.size(); }
  // No call that needs them may follow.
  void destroy_engines() { engines_.clear(); }
  bool has_engines() const { return !engines_.empty(); }
  // Of the window since the last call.
  WindowValues take_values() { return std::exchange(values_, {}); }
  // A tensor.backward() that threw had changed some .grad by then.
  bool has_changed_gradients() const { return has_changed_gradients_; }

 private:
  std::shared_ptr<nn::Module> new_model(ModelKind kind, std::size_t index);
  void add_engine(ModelKind kind);
  std::vector<std::vector<double>> gradients() const;
  void collect(const std::function<void()>& look);
  bool is_collected(std::size_t engine) const;
  std::vector<FullTensor> masters(std::size_t engine);
  std::vector<FullTensor> seen_gradients(std::size_t engine);
  void collect_counters(std::size_t engine);
  void collect_parameters(std::size_t engine);

  const TrainScenario& scenario_;
  const TrainCell& cell_;
  Runtime& runtime_;
  Options options_;
  ZeroConfig config_;
  Autograd autograd_;
  std::vector<std::shared_ptr<nn::Module>> modules_;
  std::vector<std::unique_ptr<Engine>> engines_;
  WindowValues values_;
  bool has_changed_gradients_ = false;
};

}  // namespace zeroproof::train
