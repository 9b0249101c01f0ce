#include "engine/zero/stage12.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "engine/config_marks.h"
#include "engine/precision/gradient_norm.h"
#include "engine/zero/bucket_events.h"
#include "model/check.h"

namespace zeroproof {
namespace {

// As upstream sorts their names: "torch.bfloat16" before "torch.float16" before "torch.float32".
std::vector<DType> communication_dtypes(const ZeroParameters& parameters) {
  std::vector<DType> dtypes;
  for (const ZeroParameter& parameter : parameters)
    if (parameter.group >= 0) dtypes.push_back(parameter.communication_dtype);
  std::ranges::sort(dtypes, {}, dtype_name);
  dtypes.erase(std::unique(dtypes.begin(), dtypes.end()), dtypes.end());
  return dtypes;
}

}  // namespace

Stage12Optimizer::Stage12Optimizer(ZeroContext& context)
    : FlatOptimizer(context, context.data.size(), context.data.group().rank()),
      progress_(context.parameters.size()),
      is_used_(context.parameters.size()),
      has_no_observer_(!context.events.is_on()) {
  std::int64_t total = 1;
  for (const ZeroParameter& parameter : context.parameters)
    if (parameter.group >= 0) total += parameter.elements;
  const std::int64_t capacity = std::min(total, context.config.reduce_bucket_size);
  for (const DType dtype : communication_dtypes(context.parameters))
    buckets_.emplace_back(context, dtype, capacity);
  bucket_of_.resize(context.parameters.size());
  for (const ZeroParameter& parameter : context.parameters)
    for (IpgBucket& bucket : buckets_)
      if (bucket.communication_dtype() == parameter.communication_dtype)
        bucket_of_[static_cast<std::size_t>(parameter.id.value)] = &bucket;
}

IpgBucket& Stage12Optimizer::bucket(const ZeroParameter& parameter) {
  return *bucket_of_[static_cast<std::size_t>(parameter.id.value)];
}

bool Stage12Optimizer::has_gradient_hook(const ZeroParameter& parameter) const {
  const ZeroConfig& config = context_.config;
  const bool has_accumulator = config.accumulation_dtype() != config.model_dtype();
  return parameter.group >= 0 && (partitions_gradients() || has_overlap() || has_accumulator ||
                                  config.contiguous_gradients);
}

void Stage12Optimizer::on_forward_begin(bool) {}

// The hook path: what needs no thought is done here.
void Stage12Optimizer::add_gradient(ZeroParameter& parameter) {
  if (hook_work_ == HookWork::none) return;
  if (hook_work_ == HookWork::append && !context_.is_coalescing && parameter.is_gradient_ready) {
    Tensor& grad = parameter.tensor.impl().grad;
    if (grad.is_defined() && bucket(parameter).try_append_fast(parameter, grad)) return;
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
  if (context_.is_coalescing) return;
  const Events::Call call(context_.events, "z12.process_gradients");
  if (!is_ready_ || !has_no_observer_) set_up_buckets();
  if (is_offered_by_hooks_) add_to_bucket(parameter);
}

void Stage12Optimizer::set_up_buckets() {
  const Events::Call call(context_.events, "z12.setup_buckets");
  if (is_ready_) return;
  for (IpgBucket& bucket : buckets_) bucket.set_up();
  ++micro_;
  is_ready_ = true;
  hook_work_ = known_hook_work();
}

// docs/spec/zero.md 2.16, "offer".
void Stage12Optimizer::add_to_bucket(ZeroParameter& parameter) {
  if (!partitions_gradients() && !context_.is_boundary) return;
  Tensor& grad = parameter.tensor.impl().grad;  // itself: counting references costs time here
  if (parameter.elements == 0 || !grad.is_defined()) return;
  IpgBucket& target = bucket(parameter);
  const bool is_once = context_.upstream.param_once_per_backward;
  const bool joins = !is_once && target.holds(parameter);
  if (!joins && target.is_full_for(parameter.elements)) reduce_bucket(target);
  if (!parameter.is_gradient_ready) return report_not_ready(parameter);  // the last shard has all
  if (is_once && progress(parameter).is_reduced)
    throw EngineError(
        EngineErrorId::gradient_added_after_reduction,
        "the gradient of " + parameter.name + " has already been reduced in this backward");
  move_gradient(target, parameter, joins);
}

// Stage 2 keeps .grad of its own until the reduction; stage 1 would collect it once more.
void Stage12Optimizer::move_gradient(IpgBucket& target, ZeroParameter& parameter, bool joins) {
  Tensor& grad = parameter.tensor.impl().grad;
  const bool is_kept = !context_.config.contiguous_gradients && partitions_gradients();
  if (joins && is_kept) {
    target.rebind_grad(parameter, grad);
  } else if (joins) {
    target.add(parameter, grad);
  } else {
    const Span values = append(target, parameter, grad);
    if (!partitions_gradients()) add_local_sum(parameter, values);
  }
  if (!is_kept) grad = Tensor();
}

// Stage 1 with overlap: the gradient comes with the sum of the micro-batches before.
void Stage12Optimizer::add_local_sum(const ZeroParameter& parameter, Span values) {
  Tensor& sum = accumulated(parameter);
  if (!sum.is_defined() || progress(parameter).is_sum_taken) return;
  context_.kernels().add(context_.compute(), values, Span::of(sum));
  progress(parameter).is_sum_taken = true;
}

Span Stage12Optimizer::append(IpgBucket& target, ZeroParameter& parameter, const Tensor& grad) {
  const Span values = target.append(parameter, grad);
  if (context_.events.is_on()) report_bucket_add(context_.events, parameter);
  return values;
}

void Stage12Optimizer::report_not_ready(const ZeroParameter& parameter) const {
  if (!context_.events.is_on()) return;
  HookEvent event;
  event.kind = EventKind::mark;
  event.name = context_.events.name("grad_not_ready");
  event.param = parameter.name_id;
  context_.events.send(std::move(event));
}

void Stage12Optimizer::offer_sum(ZeroParameter& parameter) {
  if (parameter.elements == 0) return;
  IpgBucket& target = bucket(parameter);
  if (target.is_full_for(parameter.elements)) reduce_bucket(target);
  if (target.holds(parameter)) {
    target.add(parameter, accumulated(parameter));
  } else {
    append(target, parameter, accumulated(parameter));
  }
  progress(parameter).is_sum_taken = true;
}

// Stage 2 keeps nothing local, except where the reduction is put off.
void Stage12Optimizer::collect_gradients() {
  if (!partitions_gradients() || context_.is_coalescing) FlatOptimizer::collect_gradients();
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
      if (!accumulated(*parameter).is_defined() || progress(*parameter).is_sum_taken) continue;
      if (is_left_to_hooks) {
        group.add_owned(group.open_pending(), slot(*parameter).index,
                        Span::of(accumulated(*parameter)));
        progress(*parameter).is_sum_taken = true;
      } else {
        offer_sum(*parameter);
      }
    }
  }
  gradient_epilogue();
}

void Stage12Optimizer::gradient_epilogue() {
  const Events::Call outer(context_.events, "z12.overlapping_partition_gradients_reduce_epilogue");
  const Events::Call call(context_.events, "z12.independent_gradient_partition_epilogue");
  for (IpgBucket& bucket : buckets_) {
    reduce_bucket(bucket);
  }
  if (has_overlap()) context_.compute().wait(context_.reduction());
  commit();
  {
    const Events::Call clearing(context_.events, "z12.clear_param_grad_only");
    clear_grads();
  }
  is_ready_ = false;
  hook_work_ = HookWork::unknown;
  ++backwards_;
  context_.set_epilogue_ran(true);
}

// What is pending joins the window; local sums that were part of it are done with.
void Stage12Optimizer::commit() {
  const bool rebuilds_average = context_.upstream.boundary_overwrites_average && !keeps_partition();
  const bool overwrites = rebuilds_average && was_boundary_;
  const bool is_upstream_offload =
      context_.config.is_offloaded() &&
      (context_.upstream.offload_never_cleared || context_.upstream.offload_copies_boundary_only ||
       repeats_unused());
  for (FlatGroup& group : groups_) {
    if (overwrites) group.clear_accumulator();
    if (is_upstream_offload) {
      commit_as_upstream_offload(group);
    } else {
      group.commit_pending();
    }
  }
  for (ZeroParameter& parameter : context_.parameters) {
    if (progress(parameter).is_sum_taken) accumulated(parameter) = {};
    if (progress(parameter).has_contributed)
      is_used_[static_cast<std::size_t>(parameter.id.value)] = progress(parameter).has_contributed;
    progress(parameter) = {};
  }
  window_holds_ = overwrites ? 1 : window_holds_ + 1;
  mark_window(context_, window_holds_);
  has_flushed_ = false;
  was_boundary_ = context_.is_boundary;
}

void Stage12Optimizer::backward_epilogue() {
  const Events::Call call(context_.events, "z12.backward_epilogue");
}

bool Stage12Optimizer::abandon_gradients() {
  const bool has_contributed = has_flushed_ || (!partitions_gradients() && backwards_ > 0) ||
                               (context_.is_coalescing && backwards_ > 0);
  if (has_overlap()) context_.compute().wait(context_.reduction());  // what it still has may go now
  for (IpgBucket& bucket : buckets_) {
    bucket.clear();
  }
  for (FlatGroup& group : groups_) group.drop_pending();
  std::ranges::fill(progress_, Progress{});
  clear_grads();
  if (is_ready_) --micro_;
  is_ready_ = false;
  hook_work_ = HookWork::unknown;
  has_flushed_ = false;
  return !has_contributed;
}

void Stage12Optimizer::visit_state(StateVisitor& visitor) const {
  FlatOptimizer::visit_state(visitor);
  for (const IpgBucket& bucket : buckets_) bucket.visit_state(visitor);
  const auto bit = [](bool is_set, int place) { return std::uint64_t{is_set} << place; };
  const bool was_boundary = was_boundary_ && context_.upstream.boundary_overwrites_average;
  visitor.number(bit(is_ready_, 0) | bit(has_flushed_, 1) | bit(was_boundary, 2));
  // Eight flags a word.
  static_assert(std::has_unique_object_representations_v<Progress>);
  const auto flags = std::as_bytes(std::span(progress_));
  for (std::size_t at = 0; at < flags.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, &flags[at], std::min(sizeof word, flags.size() - at));
    visitor.number(word);
  }
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
  const StepOutcome outcome = FlatOptimizer::step();
  micro_ = -1;
  backwards_ = 0;
  was_boundary_ = false;
  return outcome;
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
