#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/cpu_ops.h"
#include "props/interpreter/target.h"
#include "props/reference/rank_fibers.h"
#include "props/reference/whole_engine.h"

namespace zeroproof::reference {

// What checkpoints of a program hold: by engine and tag. Outlives the worlds that save and load.
using SavedStates = std::map<std::pair<std::size_t, std::string>, WholeState>;

// One rank of the unsharded reference: plain autograd over whole parameters; ranks meet at steps
// alone. Does not skip calls by itself: the interpreter skips what is refused.
class ReferenceTarget final : public program::Target {
 public:
  // Of the world that runs.
  struct Place {
    int ranks = 1;
    int rank = 0;
  };
  // All must outlive it.
  ReferenceTarget(const program::Program& program, const ZeroConfig& config, const Place& place,
                  const program::DataPlan& data, Meetings& meetings, SavedStates& saved);

  Autograd& autograd() override { return autograd_; }
  int rank() const override { return rank_; }
  bool stands_for(int world_rank) const override { return world_rank / replicas_.tensor == rank_; }
  bool is_reference() const override { return true; }
  program::TreeModule& model(std::size_t engine) override { return *engines_[engine].module; }

  TensorList forward(std::size_t engine, const TensorList& inputs) override;
  Tensor backward(std::size_t engine, const std::vector<std::size_t>& engines, const Tensor& loss,
                  const BackwardArguments& arguments) override;
  void tensor_backward(const std::vector<std::size_t>& engines, const Tensor& root,
                       const Tensor& grad, const BackwardArguments& arguments) override;
  Tensor scale(std::size_t engine, const Tensor& loss) override;
  bool step(std::size_t engine, program::Observations& seen) override;
  void zero_grad(std::size_t engine) override;
  void set_boundary(std::size_t engine, bool is_boundary) override;
  bool set_loss_scale(std::size_t engine, double loss_scale) override;
  bool set_learning_rate(std::size_t engine, std::optional<std::size_t> group,
                         double learning_rate) override;
  void no_sync(std::size_t engine, const Call& body) override;
  void coalesce(std::size_t engine, const Call& body) override;
  void gathered(std::size_t engine, const TensorList& parameters, std::optional<int> modifier,
                const Call& body) override;
  Tensor gathered_value(std::size_t engine, const Tensor& weight) const override;
  bool capture(std::size_t, const Call&) override { return false; }
  void with_short_memory(int, const Call& body, const Call&) override { body(); }
  void save(std::size_t engine, const program::Save& save, program::Observations& seen) override;
  void load(std::size_t engine, const program::Load& load, program::Observations& seen) override;
  void recreate(std::size_t engine) override;
  void inspect(std::size_t engine, program::Inspect::What what,
               program::Observations& seen) override;
  void register_external(std::size_t, const std::string&) override {}
  void set_leaf(std::size_t, const std::string&) override {}
  void evaluate_guards(std::size_t) override {}
  void release_gathered(std::size_t) override {}
  bool make_temporary(std::size_t) override { return true; }
  std::optional<std::string> try_config(const program::TryConfig&) override { return ""; }

  // Every engine goes on from what was saved under the tag.
  void load_resumed(const std::string& tag);

 private:
  // An engine, and the gradients of its window on this rank.
  struct Trained {
    std::unique_ptr<program::TreeModule> module;
    std::unique_ptr<WholeEngine> engine;
    TensorList sums;          // not reduced yet
    Contribution reductions;  // local sums of each
    std::int64_t micro_steps = 0;
    std::int64_t backwards = 0;  // of the window, that did not throw
    std::optional<bool> is_boundary = std::nullopt;
    bool is_coalescing = false;
    bool is_waiting = false;  // inside no_sync
  };

  void make(std::size_t engine);
  void restore(std::size_t engine, const std::string& tag);
  double accumulation_factor() const;
  // `factor`: of what it brings.
  void run_backward(const std::vector<std::size_t>& engines, double factor, const Call& backward);
  bool is_boundary(const Trained& trained) const;
  bool reduces_now(const Trained& trained) const;
  static void close(Trained& trained);
  void reduce_window(Trained& trained);
  void observe_gradients(std::size_t engine, program::Observations& seen);
  void see_counters(std::size_t engine, program::Observations& seen) const;
  static bool has_local(const Trained& trained);  // gradients that no reduction has

  const program::Program& program_;
  const ZeroConfig& config_;
  Replicas replicas_;
  int rank_;
  const program::DataPlan& data_;
  Meetings& meetings_;
  SavedStates& saved_;
  CpuOps ops_;
  Autograd autograd_;
  std::vector<Trained> engines_;
  int backwards_ = 0;  // that run
};

}  // namespace zeroproof::reference
