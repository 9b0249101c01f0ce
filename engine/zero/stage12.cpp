#include "engine/zero/stage12.h"

#include <algorithm>

#include "engine/config_marks.h"

namespace zeroproof {

Stage12Optimizer::Stage12Optimizer(ZeroContext& context)
    : FlatOptimizer(context, context.data.size(), context.data.group().rank()),
      gradients_(context, slots(), sums_),
      is_used_(context.parameters.size()),
      has_no_observer_(!context.events.is_on()) {}

// Ours always has one: no other hook sees a backward past the outputs (docs/spec/zero.md 2.2).
bool Stage12Optimizer::has_gradient_hook(const ZeroParameter& parameter) const {
  const ZeroConfig& config = context_.config;
  const bool has_accumulator = config.accumulation_dtype() != config.model_dtype();
  const bool is_upstream =
      partitions_gradients() || has_overlap() || has_accumulator || config.contiguous_gradients;
  return parameter.group >= 0 && (is_upstream || !context_.upstream.all);
}

// The hook path: what needs no thought is done here.
void Stage12Optimizer::add_gradient(ZeroParameter& parameter) {
  if (hook_work_ == HookWork::none) return;
  if (hook_work_ == HookWork::append && !context_.is_coalescing && parameter.is_gradient_ready) {
    Tensor& grad = parameter.tensor.impl().grad;
    if (grad.is_defined() && gradients_.bucket(parameter).try_append_fast(parameter, grad)) return;
  }
  add_gradient_slowly(parameter);
}

Stage12Optimizer::HookWork Stage12Optimizer::known_hook_work() const {
  if (!has_no_observer_) return HookWork::unknown;
  if (!is_offered_by_hooks_) return HookWork::none;
  const bool takes = partitions_gradients() && context_.config.contiguous_gradients &&
                     !context_.upstream.param_once_per_backward;
  return takes ? HookWork::append : HookWork::add;
}

void Stage12Optimizer::add_gradient_slowly(ZeroParameter& parameter) {
  if (context_.is_coalescing || stays_local()) return;
  const Events::Call call(context_.events, "z12.process_gradients");
  if (!gradients_.is_ready() || !has_no_observer_) set_up_buckets();
  if (is_offered_by_hooks_) gradients_.add(parameter);
}

// Of no_sync; upstream's hooks reduce there all the same (docs/spec/zero.md 2.12).
bool Stage12Optimizer::stays_local() const {
  return context_.is_no_sync && !context_.upstream.all;
}

void Stage12Optimizer::set_up_buckets() {
  const Events::Call call(context_.events, "z12.setup_buckets");
  if (gradients_.is_ready()) return;
  gradients_.set_up();
  ++micro_;
  hook_work_ = known_hook_work();
}

// Stage 2 keeps no local gradient, except where the reduction is put off.
void Stage12Optimizer::collect_gradients() {
  if (!partitions_gradients() || context_.is_coalescing) sums_.collect();
}

void Stage12Optimizer::reduce_gradients() {
  if (partitions_gradients()) return gradient_epilogue();
  if (!context_.is_boundary) return;
  if (!context_.config.managed_gradient_accumulation) return;
  const Events::Call call(context_.events, "z12.reduce_gradients");
  reduce_sums();
}

// Local sums in the order of their groups, then what every reduction ends with.
void Stage12Optimizer::reduce_sums() {
  set_up_buckets();
  const bool is_left_to_hooks = has_overlap() && context_.upstream.overlap_boundary_hooks_only;
  for (FlatGroup& group : groups_) {
    for (ZeroParameter* parameter : group.parameters()) {
      if (!accumulated(*parameter).is_defined() || gradients_.progress(*parameter).is_sum_taken)
        continue;
      if (is_left_to_hooks) {
        group.add_pending(slot(*parameter).index, Span::of(accumulated(*parameter)));
        gradients_.progress(*parameter).is_sum_taken = true;
      } else {
        gradients_.add_sum(*parameter);
      }
    }
  }
  gradient_epilogue();
}

void Stage12Optimizer::gradient_epilogue() {
  const Events::Call outer(context_.events, "z12.overlapping_partition_gradients_reduce_epilogue");
  const Events::Call call(context_.events, "z12.independent_gradient_partition_epilogue");
  gradients_.flush();
  commit();
  {
    const Events::Call clearing(context_.events, "z12.clear_param_grad_only");
    context_.clear_grads();
  }
  hook_work_ = HookWork::unknown;
  ++backwards_;
  context_.set_epilogue_ran(true);
}

// What is pending joins the window; local sums that were part of it are done with.
void Stage12Optimizer::commit() {
  const bool rebuilds_average = context_.upstream.boundary_overwrites_average && !keeps_partition();
  const bool overwrites = rebuilds_average && was_boundary_;
  const bool is_upstream = is_upstream_offload();
  for (FlatGroup& group : groups_) {
    if (overwrites) group.clear_accumulator();
    if (is_upstream) {
      commit_as_upstream_offload(group);
    } else {
      group.commit_pending();
    }
  }
  for (ZeroParameter& parameter : context_.parameters) {
    const BucketedGradients::Progress& progress = gradients_.progress(parameter);
    if (progress.is_sum_taken) accumulated(parameter) = {};
    if (progress.has_contributed)
      is_used_[static_cast<std::size_t>(parameter.id.value)] = progress.has_contributed;
  }
  window_holds_ = overwrites ? 1 : window_holds_ + 1;
  mark_window(context_, window_holds_);
  gradients_.finish();
  was_boundary_ = context_.is_boundary;
}

void Stage12Optimizer::backward_epilogue() {
  const Events::Call call(context_.events, "z12.backward_epilogue");
}

bool Stage12Optimizer::abandon_gradients() {
  const bool has_contributed = gradients_.has_flushed() ||
                               (!partitions_gradients() && backwards_ > 0) ||
                               (context_.is_coalescing && backwards_ > 0);
  if (gradients_.is_ready()) --micro_;
  gradients_.abandon();
  for (FlatGroup& group : groups_) group.drop_pending();
  context_.clear_grads();
  hook_work_ = HookWork::unknown;
  return !has_contributed;
}

void Stage12Optimizer::visit_state(StateVisitor& visitor) const {
  FlatOptimizer::visit_state(visitor);
  gradients_.visit_state(visitor);
  const bool was_boundary = was_boundary_ && context_.upstream.boundary_overwrites_average;
  visitor.number(was_boundary ? 1 : 0);
}

void Stage12Optimizer::flush_coalesced() {
  reduce_sums();
}

void Stage12Optimizer::finalize_unmanaged() {
  if (!partitions_gradients()) reduce_sums();
}

StepOutcome Stage12Optimizer::step() {
  const Events::Call call(context_.events, "z12.step");
  refuse_unused();
  const StepOutcome outcome = update_groups();
  drop_gradients();
  micro_ = -1;
  backwards_ = 0;
  was_boundary_ = false;
  return outcome;
}

void Stage12Optimizer::zero_grad() {
  const Events::Call call(context_.events, "z12.zero_grad");
  if (!context_.upstream.abort_leaks_state) abandon_gradients();
  if (!keeps_partition()) return drop_gradients();
  sums_.drop();
  context_.clear_grads();
}

void Stage12Optimizer::drop_gradients() {
  window_holds_ = 0;
  is_used_.assign(is_used_.size(), false);
  if (!keeps_offloaded()) return drop_windows();
  for (FlatGroup& group : groups_) group.drop_pending();
  if (!context_.upstream.offload_never_cleared) sums_.drop();
  context_.clear_grads();
}

void Stage12Optimizer::load(const std::vector<FullTensor>& parameters,
                            const std::vector<FullTensor>& states) {
  load_groups(parameters, states);
  drop_gradients();
}

// Offloaded gradients have no norm where none came (offloaded_parameter_without_gradient).
void Stage12Optimizer::refuse_unused() const {
  if (!context_.config.is_offloaded() || context_.config.ignore_unused_parameters) return;
  for (const ZeroParameter& parameter : context_.parameters)
    if (parameter.group >= 0 && parameter.elements > 0 &&
        !is_used_[static_cast<std::size_t>(parameter.id.value)])
      throw EngineError(EngineErrorId::offloaded_parameter_without_gradient,
                        parameter.name +
                            " had no gradient in this window; use it, freeze it, or "
                            "set ignore_unused_parameters: true");
}

}  // namespace zeroproof
