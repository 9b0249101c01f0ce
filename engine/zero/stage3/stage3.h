#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "engine/zero/stage3/eager_fallback.h"
#include "engine/zero/stage3/gradient_partitions.h"
#include "engine/zero/stage3/module_hooks.h"
#include "engine/zero/stage3/zero3_linear.h"
#include "engine/zero/zero3_api.h"
#include "engine/zero/zero_optimizer.h"

namespace zeroproof {

// ZeRO stage 3 (docs/spec/zero.md 2.16 to 2.19, 3): parameters, gradients and optimizer state are
// all partitioned. The module's parameters are empty outside their use.
class Zero3Optimizer final : public ZeroOptimizer, public Zero3Api {
 public:
  // `context` must outlive it. Collective.
  explicit Zero3Optimizer(ZeroContext& context);
  ~Zero3Optimizer() override;
  Zero3Optimizer(const Zero3Optimizer&) = delete;
  Zero3Optimizer& operator=(const Zero3Optimizer&) = delete;

  bool is_zero() const override { return true; }
  bool has_gradient_hook(const ZeroParameter& parameter) const override;
  std::int32_t extra_expected_hooks() const override;

  void on_forward_begin(bool ran_epilogue) override;
  std::int64_t on_forward_end(bool has_graph) override;
  void backward_prologue(std::int64_t graph) override;
  void add_gradient(ZeroParameter& parameter) override;
  void collect_gradients() override;
  void reduce_gradients() override;
  void backward_epilogue() override;
  void on_graph_task_end(bool raised) override;
  bool abandon_gradients() override;
  void visit_state(StateVisitor& visitor) const override;
  std::vector<GradientSlice> gradient_slices() const override;
  void flush_coalesced() override;
  void finalize_unmanaged() override;
  StepOutcome step() override;
  void set_rates(const std::vector<GroupRates>& groups) override;
  void count_replayed_step() override;
  void begin_capture() override;
  void zero_grad() override;

  std::vector<FullTensor> full_gradients() override;
  std::vector<FullTensor> full_parameters() override;
  std::vector<FullTensor> full_optimizer_state() override;
  void load(const std::vector<FullTensor>& parameters,
            const std::vector<FullTensor>& states) override;
  std::vector<StateShard> state_shards() override;
  StepCounts step_counts() override;
  void begin_shard_load() override;
  void finish_shard_load(const StepCounts& steps) override;

  void gathered_parameters(const TensorList& parameters, std::optional<int> modifier_rank,
                           const std::function<void()>& body) override;
  void release_gathered_parameters() override;
  void set_guard_evaluation(bool is_evaluating) override;
  void set_leaf_module(nn::Module& module) override;
  void register_external_parameter(nn::Module& module, const Tensor& parameter) override;
  void set_hook_runner(HookRunner runner) override { run_hook_ = std::move(runner); }
  void register_module_hooks() override;
  void remove_module_hooks() override;
  void set_module_prefix(const std::string& prefix) override { modules_.set_prefix(prefix); }
  void report_parameters() override;
  std::size_t forward_stack_depth() const override { return hooks_->stack_depth(); }
  ParameterGatherer& gatherer() override { return gatherer_; }
  const ParameterCoordinator& coordinator() const { return coordinator_; }

 private:
  void make_sub_groups();
  void use_fallback();
  void mark_persistent_parameters();
  void add_leaf_hooks();
  void on_leaf_backward(Zero3Module& leaf);
  void add_left_gradients();
  Zero3Module& known(nn::Module& module);

  StepOutcome update_or_refuse();
  StepOutcome update();
  Span step_gradient(SubGroup& group) const;
  std::vector<Span> shards();
  void partition_all_parameters();
  void post_step();

  // A whole parameter from what every rank keeps of it.
  std::vector<double> whole(const PartitionedParameter& parameter, Span slice);
  void load_slice(const PartitionedParameter& parameter, Span slice,
                  const std::vector<double>& values);
  void load_parameter(SubGroup& group, std::size_t index, const FullTensor& given);
  void load_state(SubGroup& group, std::size_t index, const FullTensor& given);

  ZeroContext& context_;
  ParameterGatherer gatherer_;
  Zero3Modules modules_;
  ParameterCoordinator coordinator_;
  std::unique_ptr<ModuleHooks> hooks_;
  Zero3LinearInstallation linear_;
  std::deque<SubGroup> sub_groups_;
  std::unique_ptr<EagerFallback> fallback_;  // of skipped frames; null: module hooks
  std::unique_ptr<GradientPartitions> gradients_;
  ParameterList persistent_;
  TensorList coalesced_;  // by ParamId: local sums of complete backwards that are not reduced
  std::vector<HookHandle> module_hooks_;
  HookRunner run_hook_ = [](const std::function<void()>& work) { work(); };
};

}  // namespace zeroproof
