#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/cpu_ops.h"
#include "props/reference/whole_engine.h"
#include "props/train/full_values.h"
#include "props/train/scenario.h"
#include "props/train/train_target.h"
#include "zeroproof/model/autograd.h"

namespace zeroproof::train {

// What ran in one window on one rank.
struct WindowCounts {
  std::int64_t micro_steps = 0;
  std::int64_t backwards = 0;  // that did not throw
};

// The unsharded truth of one window on one rank: plain autograd, no engine. Steps only say where
// the window ends; the update comes when all ranks have run theirs.
class BaselineTarget final : public TrainTarget {
 public:
  // All references must outlive it, `values` until recording ends.
  BaselineTarget(Autograd& autograd, std::vector<reference::WholeEngine>& engines, int rank,
                 WindowValues* values);

  Autograd& autograd() override { return autograd_; }
  int rank() const override { return rank_; }
  nn::Module& module(std::size_t engine) override { return engines_[engine].module(); }

  TensorList forward(std::size_t engine, const TensorList& inputs) override;
  Tensor backward(std::size_t engine, const Tensor& loss,
                  const BackwardArguments& arguments) override;
  // backward_without_loss_scaling for one engine that has to scale, and was not asked to since the
  // last backward (docs/spec/zero.md 2.20).
  void tensor_backward(const TensorList& roots, const TensorList& grads,
                       bool retain_graph) override;
  bool needs_scaler(std::size_t engine) override;
  Tensor scale(std::size_t engine, const Tensor& loss, bool retain_graph) override;
  void step(std::size_t engine) override;
  void zero_grad(std::size_t engine) override;
  void coalesce(std::size_t engine, const std::function<void()>& body) override;
  void set_boundary(std::size_t engine, bool is_boundary) override;
  void record(const std::string& name, const Tensor& value) override;
  void stop_recording() { values_ = nullptr; }

  // The local sums of each reduction of an engine in this window, in order.
  const std::vector<TensorList>& reductions(std::size_t engine) const {
    return windows_[engine].reductions;
  }
  const WindowCounts& steps(std::size_t engine) const { return windows_[engine].counts; }

 private:
  struct Window {
    TensorList sums;  // not reduced yet
    std::vector<TensorList> reductions;
    WindowCounts counts;
    std::optional<bool> is_boundary = std::nullopt;  // as the program says
    bool is_coalescing = false;
    bool is_scaled = false;  // the backward that comes
  };

  double accumulation_factor(std::size_t engine) const;
  // The loss of `backward` is divided by the accumulation steps of `divided_by`; none: undivided.
  void run_backward(const std::function<void()>& backward, std::optional<std::size_t> divided_by);
  void finish_backward(std::optional<std::size_t> divided_by);
  bool reduces_now(std::size_t engine) const;
  void close(Window& window);

  Autograd& autograd_;
  std::vector<reference::WholeEngine>& engines_;
  int rank_;
  WindowValues* values_;
  std::vector<Window> windows_;
};

// All windows of a scenario under the baseline, in order.
std::vector<WindowValues> run_baseline(const TrainScenario& scenario, const TrainCell& cell);

}  // namespace zeroproof::train
