#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/schedule/group_rates.h"
#include "engine/zero/state_shard.h"
#include "engine/zero/state_visitor.h"
#include "engine/zero/zero_context.h"
#include "zeroproof/engine/engine.h"

namespace zeroproof {

// What one stage does with gradients, master weights and optimizer state. The engine calls it in
// the order of docs/spec/zero.md 2.3 to 2.11. Methods throw EngineError for the misuses of their
// stage. One object an engine.
class ZeroOptimizer {
 public:
  virtual ~ZeroOptimizer() = default;

  // Whether tensor.backward() may be used: it is a ZeRO optimizer (docs/spec/zero.md 2.1).
  virtual bool is_zero() const = 0;
  // Whether gradient hooks are registered at all (docs/spec/zero.md 2.2), and on which parameters.
  virtual bool has_gradient_hook(const ZeroParameter& parameter) const = 0;
  // Leaf modules count one hook each (docs/spec/zero.md 2.16, 3.7); 0 in other stages.
  virtual std::int32_t extra_expected_hooks() const { return 0; }

  // engine.forward begins; `ran_epilogue`: since the last one.
  virtual void on_forward_begin(bool ran_epilogue) = 0;
  // It returned or threw; `has_graph`: a backward can reach what it returned. What it gives comes
  // back with the prologue of that backward: the number of its graph, or -1.
  virtual std::int64_t on_forward_end(bool /*has_graph*/) { return -1; }
  virtual void backward_prologue(std::int64_t /*graph*/) {}
  // The work of one gradient hook: parameter.grad is complete for this backward so far.
  virtual void add_gradient(ZeroParameter& parameter) = 0;
  // The epilogue begins: what the backward left in .grad is now known to be whole. Also while
  // coalescing and under no_sync.
  virtual void collect_gradients() {}
  // Where the epilogue reduces what is left (docs/spec/zero.md 2.7); not called while coalescing or
  // under no_sync.
  virtual void reduce_gradients() = 0;
  // The rest of the epilogue (docs/spec/zero.md 2.6, step 3).
  virtual void backward_epilogue() {}
  // The tracker has forgotten the graph task that ended.
  virtual void on_graph_task_end(bool /*raised*/) {}
  // A backward failed: what it added is dropped, what earlier ones of the window added stays.
  // False when upstream could not distinguish them any more (#8245, incomplete_backward).
  virtual bool abandon_gradients() = 0;

  // The gradients of the window and of the running backward: what of them is where.
  virtual void visit_state(StateVisitor& visitor) const = 0;
  // Of the rank, by parameter; where the epilogue leaves the window's gradients.
  virtual std::vector<GradientSlice> gradient_slices() const = 0;

  // The end of coalesce_grad_reduction: everything in .grad is reduced at once.
  virtual void flush_coalesced() = 0;
  // step() in unmanaged mode, before the update (docs/spec/zero.md 2.14).
  virtual void finalize_unmanaged() = 0;
  // The update. `is_applied` false: overflow.
  virtual StepOutcome step() = 0;
  // From the next step on; a number for each parameter group.
  virtual void set_rates(const std::vector<GroupRates>& groups) = 0;
  // A replay took the step that was captured once more.
  virtual void count_replayed_step() = 0;
  // An iteration is about to be captured: it may find no state that the one before it left, but
  // what is in the same place after each.
  virtual void begin_capture() {}
  // It was not captured after all: the device has done no part of it.
  virtual void abandon_capture() {}
  // Parameters are whole for every reader, not for modules alone; see EngineOptions.
  virtual void gather_ahead() {}
  virtual void zero_grad() = 0;  // gradients, accumulators, the window so far

  // Stage 3 alone; no effect elsewhere. See Engine.
  virtual void gathered_parameters(const TensorList&, std::optional<int>,
                                   const std::function<void()>& body) {
    body();
  }
  virtual void release_gathered_parameters() {}
  virtual void set_guard_evaluation(bool) {}
  virtual void set_leaf_module(nn::Module&) {}
  virtual void register_external_parameter(nn::Module&, const Tensor&) {}

  // Collective; see Engine.
  virtual std::vector<FullTensor> full_gradients() = 0;
  virtual std::vector<FullTensor> full_parameters() = 0;
  virtual std::vector<FullTensor> full_optimizer_state() = 0;
  // Collective: replaces master weights and states by whole values, in the same names. The lp
  // parameters follow.
  virtual void load(const std::vector<FullTensor>& parameters,
                    const std::vector<FullTensor>& states) = 0;

  // What this rank has of every parameter's master weights and states, and of none but itself. A
  // load of shards writes them between the two calls.
  virtual std::vector<StateShard> state_shards() = 0;
  virtual StepCounts step_counts() = 0;
  virtual void begin_shard_load() {}
  // Collective: the lp parameters follow.
  virtual void finish_shard_load(const StepCounts& steps) = 0;
};

}  // namespace zeroproof
