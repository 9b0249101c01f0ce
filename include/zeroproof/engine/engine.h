#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeroproof/engine/engine_checkpoint_options.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/engine/fallback_rule.h"
#include "zeroproof/engine/full_tensor.h"
#include "zeroproof/engine/quirks.h"
#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/nn/module.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

class HookPolicy;  // zeroproof/engine/hooks/hook_policy.h

struct EngineOptions {
  EngineId id = EngineId{0};     // in events; distinguishes the engines of one process
  std::string name = {};         // goes before the names of parameters and modules in events
  std::string policy = "exact";  // zeroproof/engine/hooks/policies.h
  bool has_count_apis =
      true;  // --autograd-api none: manual backward is refused (manual_backward_unsupported)
  bool has_callback_api = true;  // --autograd-api no_callback: policies count instead
  Quirks quirks = {};
  // For harnesses that inject faults: one in the engine's own code, and a decorator of its policy.
  std::function<std::unique_ptr<HookPolicy>(std::unique_ptr<HookPolicy>)> decorate_policy = {};
  // Parameters in groups; empty: one group of all that require a gradient.
  std::vector<TensorList> parameter_groups = {};
  // Stage 3 under DeepCompile, where the compiler skipped every frame: parameters are gathered
  // when they are read, and given back by this rule.
  bool skips_frames = false;
  FallbackRule fallback_rule = FallbackRule::per_graph;
  // Of stages 1 and 2 with overlap_comm: what a step made reaches the other ranks beside the next
  // forward, and a module waits for its own parameters alone. All ranks call the same forwards. Who
  // reads a parameter between a step and a forward, but by Module::read(), finds old values of
  // other ranks' slices, unless gather_parameters() came before.
  bool gathers_ahead = false;
  // In place of what the configuration says, for good; see override_loss_scale for one that moves.
  std::optional<double> custom_loss_scale = std::nullopt;
};

struct BackwardArguments {
  bool retain_graph = false;
  bool create_graph = false;
  bool scale_wrt_gas = true;
};

// What an optimizer step did.
struct StepOutcome {
  bool is_applied = false;  // at a boundary, without overflow
  bool has_overflow = false;
  std::optional<double> grad_norm;  // unscaled, before clipping; at a boundary only
};

// A ZeRO training engine around a module, in the words of DeepSpeed. One rank's part: every rank
// makes one with an equal module and configuration and calls the same methods in the same order.
// Throws UsageError for a misuse (EngineError where upstream raises), RuntimeFault for what failed
// below, and whatever the model throws. Not thread-safe. Numbers in brackets are sections of
// docs/spec/zero.md.
class Engine {
 public:
  // All references must outlive it. Converts the module's parameters to the configured dtype and,
  // in stage 3, partitions them; rank 0's values are those of all. The error names a
  // configuration that cannot work.
  static Result<std::unique_ptr<Engine>> initialize(Autograd& autograd, nn::Module& module,
                                                    const ZeroConfig& config, Runtime& runtime,
                                                    const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  TensorList forward(const TensorList& inputs);
  Tensor forward(const Tensor& input) { return forward(TensorList{input}).at(0); }

  // Differentiates the loss, reduces, and returns the loss, divided by the accumulation steps
  // unless scale_wrt_gas is false (2.9). backward_of_invalid_loss.
  Tensor backward(const Tensor& loss, const BackwardArguments& arguments = {});
  // The loss to differentiate by hand; needed where needs_scaler() says so (2.10).
  // scale_of_invalid_loss. `retain_graph` is DeepSpeed's (#8045); here stage 3 sees for itself
  // which backward retains.
  Tensor scale(const Tensor& loss, bool retain_graph = false);
  bool needs_scaler() const;
  // The caller's own loss scale (upstream's external one) from the next forward on, in place of
  // whatever scale there was; overflow does not move it, the caller does. An error unless it is
  // positive and finite, and while the window has gradients that another one scaled.
  Result<void> override_loss_scale(double loss_scale);

  // One optimizer step at a boundary; counts micro-steps elsewhere (2.11). step_inside_no_sync,
  // incomplete_backward.
  StepOutcome step();
  void zero_grad();
  // With gathers_ahead, on all ranks: work that is queued from now on finds whole parameters.
  void gather_parameters();
  bool is_gradient_accumulation_boundary() const;
  void set_gradient_accumulation_boundary(
      bool is_boundary);  // boundary_set_in_unmanaged_accumulation

  // The learning rate of all parameter groups, or of one, from the next step on. Every rank sets
  // the same. A /scheduler replaces it after each step that is not skipped. Ends a capture. An
  // error, without an effect, unless it is finite and not negative, and the group is there.
  Result<void> set_learning_rate(double learning_rate);
  Result<void> set_learning_rate(std::size_t group, double learning_rate);
  std::vector<double> learning_rates() const;  // a number for each parameter group

  // Captures one iteration, from its forwards to the step of a boundary, and takes that step: what
  // the host does while `iteration` runs, hooks too, it does this once; what the device does is
  // done again by each replay(), as one more step, on the same memory. So inputs go into fixed
  // tensors, and what an iteration leaves, losses too, lies where the first one left it. Iterations
  // of the same kind have run before. An error names what keeps the engine from it, and no part has
  // run; RuntimeFault as of GraphCapture.
  Result<void> capture(const std::function<void()>& iteration);
  void replay();
  // Of the last step that capture() or replay() took, as StepOutcome has it of others. The host
  // waits for the device.
  double replayed_grad_norm() const;

  // Runs `body` without reducing (2.12, no_sync_not_allowed), or reducing once at its end (2.13,
  // coalesce_not_allowed).
  void no_sync(const std::function<void()>& body);
  void coalesce_grad_reduction(const std::function<void()>& body);

  // A forward or backward between the two must not be under way. `modifier_rank`: whose changes
  // all ranks take over; none: no rank changes any (3.9, gather_contexts_overlap to
  // gathered_parameter_left_device).
  void gathered_parameters(const TensorList& parameters, std::optional<int> modifier_rank,
                           const std::function<void()>& body);
  // A tiled computation has more of this gradient to come in the same backward (2.16).
  void set_gradient_ready(const Tensor& parameter, bool is_ready);
  // With skips_frames: gives up forwards that will have no backward; reads meanwhile by the
  // compiler's guards do not gather.
  void release_gathered_parameters();
  void set_guard_evaluation(bool is_evaluating);
  // Stage 3: one fetch for everything below `module` (3.7). Before the first forward.
  void set_leaf_module(nn::Module& module);
  // Stage 3: `module` uses a parameter that it does not own (3.8).
  void register_external_parameter(nn::Module& module, const Tensor& parameter);

  std::int64_t micro_steps() const;
  std::int64_t global_steps() const;
  std::int64_t skipped_steps() const;
  std::int64_t global_samples() const;
  double loss_scale() const;

  // Whole values, collected from all ranks: every rank must call. Gradients are those that the
  // next step will use, unscaled; empty values for a parameter that is not trained.
  std::vector<FullTensor> full_gradients();
  std::vector<FullTensor> full_parameters();  // the master copies; frozen ones as they are
  // "name/exp_avg", "name/exp_avg_sq", "name/momentum_buffer", "name/step"
  std::vector<FullTensor> full_optimizer_state();

  // Collective; a checkpoint can be loaded by any number of ranks (engine/checkpoint/). What fails
  // on one rank fails on all; a failed load changes no state.
  Result<void> save_checkpoint(const std::string& folder,
                               const EngineCheckpointOptions& options = {});
  Result<void> load_checkpoint(const std::string& folder,
                               const EngineCheckpointOptions& options = {});

  // Collective. As save_checkpoint() of now, but returns once a copy is made, of the size of what
  // this rank writes; threads write it while training goes on, and a checkpoint is there once all
  // have. The next save or load waits for them, and returns their error in place of its own work.
  // `files` must outlive that; a `store` saves at once. What is not written when the engine is
  // destroyed is given up.
  Result<void> async_save_checkpoint(const std::string& folder,
                                     const EngineCheckpointOptions& options = {});
  // Collective. Waits for it; its error is that of all ranks. Done already, or none: ok.
  Result<void> wait_checkpoint();

  const ZeroConfig& config() const;
  Autograd& autograd() const;
  nn::Module& module() const;
  Runtime& runtime() const;
  // The state of the hook policy, for properties.
  BackwardState hook_state() const;

  class Core;  // engine/engine_core.h: what the parts of the engine share
  explicit Engine(std::unique_ptr<Core> core);  // see initialize()

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace zeroproof
