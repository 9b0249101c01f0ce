#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/captured_iteration.h"
#include "engine/checkpoint/pending_save.h"
#include "engine/checkpoint/shard_load.h"
#include "engine/checkpoint/training_state.h"
#include "engine/loss_factor.h"
#include "engine/runtime/side_work.h"
#include "engine/schedule/learning_rates.h"
#include "engine/zero/zero_context.h"
#include "engine/zero/zero_optimizer.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/hooks/hook_host.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {

// What an Engine is made of: the hook policy decides when, the stage's optimizer does what, and
// this connects both with the autograd's hooks (docs/spec/zero.md 2.2 to 2.11).
class Engine::Core final : public HookHost, public GraphTaskListener {
 public:
  Core(Autograd& autograd, nn::Module& module, const ZeroConfig& config, Runtime& runtime,
       const EngineOptions& options, const LossScaler& loss_scaler);
  ~Core() override;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // engine_forward.cpp
  TensorList forward(const TensorList& inputs);

  // engine_backward.cpp
  Tensor backward(const Tensor& loss, const BackwardArguments& arguments);
  Tensor scale(const Tensor& loss);
  bool needs_scaler() const;
  Result<void> override_loss_scale(double loss_scale);

  // engine_step.cpp
  StepOutcome step();
  void zero_grad();
  void set_leaf_module(nn::Module& module);
  bool is_boundary() const;
  void set_boundary(bool is_boundary);
  void no_sync(const std::function<void()>& body);
  void coalesce(const std::function<void()>& body);

  // engine_capture.cpp
  Result<void> capture(const std::function<void()>& iteration);
  void replay();
  double replayed_grad_norm() const;
  // The optimizer takes over changed learning rates, which no captured iteration has.
  Result<void> changed_rates(Result<void> change);

  // engine_checkpoint.cpp
  Result<void> save_checkpoint(const std::string& folder, const EngineCheckpointOptions& given);
  Result<void> load_checkpoint(const std::string& folder, const EngineCheckpointOptions& given);

  // engine_async_save.cpp
  Result<void> async_save_checkpoint(const std::string& folder,
                                     const EngineCheckpointOptions& given);
  Result<void> wait_checkpoint();

  // The gradient hook of one parameter: .grad is complete for this graph task. Never allocates
  // and costs the same whatever the number of parameters, but for what it has to reduce.
  void on_gradient(ZeroParameter& parameter);

  // The parameter of the module that the tensor is. UsageError for any other tensor.
  ZeroParameter& parameter(const Tensor& tensor);

  ZeroContext& context() { return context_; }
  const ZeroContext& context() const { return context_; }
  ZeroOptimizer& optimizer() { return *optimizer_; }
  LearningRates& learning_rates() { return learning_rates_; }
  const HookPolicy& policy() const { return *policy_; }

  const EngineCounters& counters() const { return counters_; }

  // HookHost
  bool has_callback_api() const override { return options_.has_callback_api; }
  GraphTaskId current_graph_task() const override;
  void queue_callback() override;
  std::int32_t count_expected_hooks() override;
  void run_post_hook() override;
  void abandon_gradients() override;

  // All that decides how its hooks, callbacks and epilogue go on; between graph tasks and inside
  // one. What the graph tasks themselves have queued is the autograd's.
  void visit_state(StateVisitor& visitor) const;

  // GraphTaskListener
  void on_graph_task_begin(GraphTaskId task, bool keeps_graph) override;
  void on_graph_task_end(GraphTaskId task, bool raised) override;

 private:
  // One call of forward, for the hooks on its outputs.
  struct ForwardRecord {
    bool ran_prologue = false;
    GraphTaskId prologue_task;
    std::int64_t graph = -1;  // as the optimizer counts them
  };

  void register_parameters();
  void register_root_hooks();
  void register_gradient_hooks();
  void remove_gradient_hooks();
  void on_hook(const std::function<void()>& work);
  void run_observed_callback(const std::string& label);
  void on_gradient_slowly(ZeroParameter& parameter);
  void on_observed_gradient(ZeroParameter& parameter);
  Tensor on_leaf_gradient(const Tensor& grad);

  void tell_configuration();  // to the events, once
  void begin_forward();
  TensorList run_module(const TensorList& inputs);
  bool hook_outputs(const TensorList& outputs, const std::shared_ptr<ForwardRecord>& record);
  Tensor on_output_gradient(const std::shared_ptr<ForwardRecord>& record, const Tensor& grad);
  void prologue(std::int64_t graph);
  void refuse_manual_backward() const;

  void check_scalar(const Tensor& loss, EngineErrorId error) const;
  void run_backward(const Tensor& loss, const BackwardArguments& arguments);
  void epilogue();
  void count_backward();
  void end_manual_backward(bool raised);
  void take_model_step(StepOutcome& outcome);
  void refresh_boundary();

  std::vector<ParameterGroup> parameter_groups() const;
  Result<void> all_ranks_succeeded(Result<void> result);
  void run_for_files(const EngineCheckpointOptions& given, const SideWork::Work& work);
  TrainingState training_head(const EngineCheckpointOptions& given) const;
  std::unique_ptr<PendingSave> begin_save(TrainingState state, const std::string& folder,
                                          const EngineCheckpointOptions& given);
  // Of checkpoints with CheckpointLayout::shards.
  ShardState shard_state(TrainingState head);
  ShardSnapshot shard_snapshot(TrainingState head, DType dtype);
  Result<void> save_shards(TrainingState head, const std::string& folder,
                           const EngineCheckpointOptions& given);
  Result<ShardLoad> checked_shards(const std::string& folder, const EngineCheckpointOptions& given);
  Result<void> apply_shards(const ShardLoad& load);
  double gas() const { return static_cast<double>(config_.gradient_accumulation_steps); }
  bool is_zero() const { return optimizer_->is_zero(); }
  bool is_exact() const { return options_.policy == "exact"; }
  bool supports_manual_backward() const;
  bool is_in_transform() const;

  std::string capture_obstacle() const;

  const ZeroConfig config_;
  const EngineOptions options_;
  ZeroContext context_;
  LossFactor loss_factor_{context_};
  std::unique_ptr<HookPolicy> policy_;
  std::unique_ptr<ManagerObserver> manager_events_;  // null without a recording
  std::unique_ptr<ZeroOptimizer> optimizer_;
  LearningRates learning_rates_;
  EngineCounters counters_;
  CapturedIteration captured_{context_};
  bool is_saving_ = false;                     // on all ranks alike
  std::unique_ptr<PendingSave> pending_save_;  // null on a rank without files to write
  std::vector<HookHandle> handles_;
  std::vector<HookHandle> gradient_handles_;
  bool has_leaf_hooks_ = false;                            // one of them is on_leaf_gradient()
  const bool has_no_observer_ = !context_.events.is_on();  // no recording, no fault injection
  bool has_unreduced_gradients_ = false;                   // of hooks since the last epilogue
  bool is_scale_called_ = false;
  bool has_manual_epilogue_ = false;   // of the manual backward that runs
  bool ran_epilogue_ = false;          // since the last forward
  bool has_scaled_gradients_ = false;  // the window has some
  bool is_configuration_told_ = false;
  bool is_step_running_ = false;
  bool is_incomplete_ = false;  // the window: incomplete_backward
  std::optional<bool> boundary_override_;
};

}  // namespace zeroproof
