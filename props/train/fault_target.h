#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "props/train/engine_target.h"
#include "sim/world/planned_faults.h"
#include "zeroproof/engine/runtime/runtime.h"

namespace zeroproof::train {

// Thrown by the next call of a program whose engines are gone.
struct EnginesGone : std::runtime_error {
  EnginesGone() : std::runtime_error("the engines are gone") {}
};

// The hooks that a user could have on a model: every one is a place where a fault can strike, and
// a gradient can become infinite on its way.
class FaultHooks final : public ModelObserver, public AutogradObserver {
 public:
  // All references must outlive it.
  FaultHooks(sim::PlannedFaults& faults, int rank) : faults_(faults), rank_(rank) {}

  void on_model(Autograd& autograd, nn::Module& module, const std::string& prefix) override;
  TensorList run_checkpoint(std::string_view label,
                            const std::function<TensorList()>& body) override;
  void on_function(EventKind kind, std::string_view label) override;
  void on_node(const Node&) override { reach(EventKind::node_exec); }

  void remove_all();
  // Called when a gradient has been accumulated; empty for none.
  std::function<void()> on_gradient;

 private:
  void reach(EventKind kind) { faults_.point(rank_).reach(kind, NameId::none()); }
  void watch_parameter(const Tensor& parameter);

  sim::PlannedFaults& faults_;
  int rank_;
  std::vector<HookHandle> handles_;
};

// One rank's engines under faults: steps that are not called, and engines that go.
class FaultTarget final : public TrainTarget {
 public:
  // All references must outlive it.
  FaultTarget(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
              sim::PlannedFaults& faults);

  Autograd& autograd() override { return inner_.autograd(); }
  int rank() const override { return inner_.rank(); }
  nn::Module& module(std::size_t engine) override { return inner_.module(engine); }

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

  Engine& engine(std::size_t index) { return inner_.engine(index); }
  WindowValues take_values() { return inner_.take_values(); }
  bool has_engines() const { return inner_.has_engines(); }
  bool is_in_step() const { return is_in_step_; }  // or one of them threw
  void forget_step() { is_in_step_ = false; }

 private:
  EngineTarget::Options options();
  void begin_call();
  void destroy_when_due();

  sim::PlannedFaults& faults_;
  int rank_;
  FaultHooks hooks_;
  EngineTarget inner_;
  int calls_ = 0;  // of engines, under way
  bool is_in_step_ = false;
};

}  // namespace zeroproof::train
