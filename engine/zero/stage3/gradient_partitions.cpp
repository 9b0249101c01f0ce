#include "engine/zero/stage3/gradient_partitions.h"

#include "engine/config_marks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/zero/bucket_events.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {
namespace {

[[noreturn]] void refuse_size(const PartitionedParameter& parameter, std::int64_t elements) {
  throw EngineError(EngineErrorId::gradient_of_wrong_size,
                    "the gradient of " + parameter.parameter().name + " has " +
                        std::to_string(elements) + " elements instead of " +
                        std::to_string(parameter.elements()) +
                        "; a leaf module needs an input that requires a gradient");
}

}  // namespace

GradientPartitions::GradientPartitions(ZeroContext& context, ParameterGatherer& gatherer,
                                       std::deque<SubGroup>& sub_groups)
    : context_(context),
      has_no_observer_(!context.events.is_on()),
      reducer_(context),
      states_(gatherer.parameters().size()),
      sub_groups_(sub_groups) {
  for (SubGroup& group : sub_groups)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      PartitionedParameter& parameter = *group.parameters()[i];
      const DType dtype = parameter.parameter().communication_dtype;
      const auto bucket = buckets_.try_emplace(dtype_name(dtype), context, dtype).first;
      state(parameter) = {
          .sub_group = &group, .parameter = &parameter, .bucket = &bucket->second, .index = i};
    }
}

void GradientPartitions::add(const ZeroParameter& parameter, bool is_from_leaf_module) {
  const State& known = state_of(parameter.id);
  if (known.sub_group == nullptr || parameter.elements == 0) return;
  GradientBucket& bucket = *known.bucket;
  const bool may_repeat = is_from_leaf_module ? context_.upstream.leaf_bucketed_per_backward
                                              : context_.upstream.param_once_per_backward;
  // .grad has added up what came since.
  if (bucket.holds(parameter) && !may_repeat) return;
  if (bucket.is_full_for(parameter.elements) && !bucket.is_empty()) reduce_bucket(bucket);
  if (!parameter.is_gradient_ready) return;
  const Tensor& grad = parameter.tensor.impl().grad;  // counts no references
  if (!grad.is_defined()) give_zeros(*known.parameter, is_from_leaf_module);
  bucket.add(parameter, *known.parameter);
  if (context_.events.is_on()) report_bucket_add(context_.events, parameter);
}

// Upstream's zeros of a leaf module are as large as the parameter is at that moment, which the
// flush notices (gradient_of_wrong_size), unless the real gradient runs into them before.
void GradientPartitions::give_zeros(const PartitionedParameter& parameter,
                                    bool is_from_leaf_module) const {
  const Tensor& tensor = parameter.parameter().tensor;
  const bool is_late = context_.upstream.leaf_bucketed_per_backward;
  if (is_from_leaf_module && !parameter.is_available() && !is_late)
    refuse_size(parameter, tensor.numel());
  const Shape sizes = is_from_leaf_module ? tensor.sizes() : parameter.parameter().sizes;
  const Tensor zeros = context_.runtime.memory().allocate(numel(sizes), tensor.dtype());
  context_.kernels().fill(context_.compute(), Span::of(zeros), 0.0);
  tensor.set_grad(zeros.as_strided(sizes, contiguous_strides(sizes), 0));
}

void GradientPartitions::flush_all() {
  std::vector<GradientBucket*> order;
  for (auto& [name, bucket] : buckets_)
    if (!bucket.is_empty()) order.push_back(&bucket);
  for (GradientBucket* const bucket : order) reduce_bucket(*bucket);
}

void GradientPartitions::reduce_bucket(GradientBucket& bucket) {
  report_flush(bucket);
  check(bucket);
  bucket.order_before(reducer_.stream());
  const ParameterList& parameters = bucket.take_all();
  Tensor slices;
  try {
    slices = reducer_.reduce(parameters, bucket.communication_dtype());
    const Events::Call reported(context_.events, "z3.partition_grads");
    partition(parameters, slices);
  } catch (...) {
    keep_queued(parameters, slices);
    throw;
  }
}

// A reduction that failed on the way: what is queued of it still reads its memory.
void GradientPartitions::keep_queued(const ParameterList& parameters, const Tensor& slices) {
  Stream& stream = reducer_.stream();
  if (slices.is_defined()) stream.record_use(slices);
  for (const PartitionedParameter* parameter : parameters) {
    const Tensor grad = parameter->parameter().tensor.grad();
    if (grad.is_defined()) stream.record_use(grad);
  }
}

void GradientPartitions::check(const GradientBucket& bucket) {
  std::set<ParamId> seen;
  for (const PartitionedParameter* parameter : bucket.parameters()) {
    const Tensor grad = parameter->parameter().tensor.grad();
    const std::int64_t elements = grad.is_defined() ? grad.numel() : 0;
    if (elements != parameter->elements()) refuse_size(*parameter, elements);
    if (!seen.insert(parameter->id()).second)
      throw EngineError(EngineErrorId::parameter_twice_in_bucket,
                        parameter->parameter().name + " is twice in one bucket");
  }
}

void GradientPartitions::partition(const ParameterList& parameters, const Tensor& slices) {
  Kernels& kernels = context_.kernels();
  Stream& stream = reducer_.stream();
  std::int64_t offset = 0;
  bool is_read = false;  // this rank owns a part of what was reduced
  for (PartitionedParameter* parameter : parameters) {
    State& its = state(*parameter);
    const FlatRange own = its.sub_group->own(its.index);
    is_read = is_read || own.elements > 0;
    const Tensor& pending = its.sub_group->open_pending();  // on every rank, so that all can fail
    if (own.elements > 0) {
      const Span target = Span::of(pending, own.begin, own.elements);
      const Span source = Span::of(slices, offset, own.elements);
      if (its.has_pending && !overwrites_pending()) {
        kernels.add(stream, target, source);
      } else {
        kernels.copy(stream, target, source);
      }
    }
    its.has_pending = true;
    offset += parameter->slice_elements();
    stream.record_use(parameter->parameter().tensor.grad());
    parameter->parameter().tensor.set_grad({});
  }
  stream.record_use(slices);
}

// A parameter that comes again after a flush of the same backward: upstream copies while the
// window counts no earlier micro-step (H13).
bool GradientPartitions::overwrites_pending() const {
  if (!context_.upstream.param_once_per_backward) return false;
  return context_.upstream.micro_step_counts_forwards ? micro_step_ == 0
                                                      : completed_backwards_ == 0;
}

bool GradientPartitions::overwrites_window(const State& its) const {
  const bool is_first =
      context_.upstream.micro_step_counts_forwards ? micro_step_ == 0 : completed_backwards_ == 0;
  if (!its.has_accumulated) return is_first || !context_.upstream.partition_never_cleared;
  return context_.upstream.micro_step_counts_forwards && is_first;
}

void GradientPartitions::await_reductions() {
  context_.compute().wait(reducer_.stream());
}

void GradientPartitions::commit() {
  await_reductions();
  for (SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      State& its = state(*group.parameters()[i]);
      if (!its.has_pending) continue;
      const FlatRange own = group.own(i);
      if (own.elements > 0) {
        const Span target = Span::of(group.grad_accumulator(), own.begin, own.elements);
        const Span source = Span::of(group.pending(), own.begin, own.elements);
        if (overwrites_window(its)) {
          context_.kernels().copy(context_.compute(), target, source);
        } else {
          context_.kernels().add(context_.compute(), target, source);
        }
      }
      its.has_accumulated = true;
    }
  const bool copies_now = context_.upstream.offload_copies_boundary_only &&
                          context_.config.managed_gradient_accumulation && context_.is_boundary;
  if (copies_now) copy_to_hp(true);
  for (State& its : states_) its.has_pending = false;
  for (SubGroup& group : sub_groups_) group.close_pending(reducer_.stream());
  ++completed_backwards_;
  mark_window(context_, context_.upstream.micro_step_counts_forwards ? micro_step_ + 1
                                                                     : completed_backwards_);
}

void GradientPartitions::drop_backward() {
  for (auto& [name, bucket] : buckets_) bucket.clear();
  for (State& its : states_) {
    its.has_pending = false;
  }
  for (SubGroup& group : sub_groups_) group.close_pending(reducer_.stream());
  context_.clear_grads();
}

// A bucket's gradients stand in .grad; which of them came first does not matter to anybody.
void GradientPartitions::visit_state(StateVisitor& visitor) const {
  visitor.number(static_cast<std::uint64_t>(micro_step_) << 32 |
                 static_cast<std::uint64_t>(completed_backwards_));
  for (const auto& [name, bucket] : buckets_) visitor.number(bucket.parameters().size());
  for (const State& its : states_) {
    if (its.sub_group == nullptr) continue;
    const FlatRange own = its.sub_group->own(its.index);
    const ZeroParameter& whole = its.parameter->parameter();
    const bool is_held = its.bucket->holds(whole);
    visitor.number((its.has_accumulated ? 1U : 0U) | (its.has_pending ? 2U : 0U) |
                   (is_held ? 4U : 0U));
    if (is_held && whole.tensor.grad().is_defined()) visitor.values(Span::of(whole.tensor.grad()));
    if (own.elements == 0) continue;
    if (its.has_accumulated)
      visitor.values(Span::of(its.sub_group->grad_accumulator(), own.begin, own.elements));
    if (its.has_pending)
      visitor.values(Span::of(its.sub_group->pending(), own.begin, own.elements));
  }
}

bool GradientPartitions::has_pending() const {
  return std::ranges::any_of(states_, [](const State& its) { return its.has_pending; });
}

void GradientPartitions::start_window() {
  for (State& its : states_) its.has_accumulated = false;
  micro_step_ = 0;
  completed_backwards_ = 0;
}

void GradientPartitions::on_forward_begin(bool ran_epilogue) {
  if (ran_epilogue) ++micro_step_;
}

// An offloaded gradient that is not cleared is there for the next update (H16).
void GradientPartitions::finish_update() {
  if (context_.upstream.partition_never_cleared || !context_.config.is_offloaded()) return;
  for (SubGroup& group : sub_groups_)
    context_.kernels().fill(context_.compute(), Span::of(group.hp_gradient()), 0.0);
}

void GradientPartitions::prepare_update() {
  if (!context_.upstream.partition_never_cleared)
    for (SubGroup& group : sub_groups_) {
      for (std::size_t i = 0; i < group.parameters().size(); ++i) {
        if (state(*group.parameters()[i]).has_accumulated) continue;
        const FlatRange slice = group.padded(i);
        context_.kernels().fill(context_.compute(),
                                Span::of(group.grad_accumulator(), slice.begin, slice.elements),
                                0.0);
      }
    }
  const bool is_copied = context_.upstream.offload_copies_boundary_only &&
                         context_.config.managed_gradient_accumulation;
  if (!is_copied) copy_to_hp(false);
}

// What no backward contributed to is zero for the update; upstream leaves the last one's (H16).
void GradientPartitions::copy_to_hp(bool is_boundary_only) {
  if (!context_.config.is_offloaded()) return;
  for (SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const State& its = state(*group.parameters()[i]);
      const bool is_stale_kept = context_.upstream.partition_never_cleared;
      const bool is_taken =
          is_boundary_only ? its.has_pending : its.has_accumulated || !is_stale_kept;
      if (!is_taken) continue;
      const FlatRange slice = group.padded(i);
      context_.kernels().copy(context_.compute(),
                              Span::of(group.hp_gradient(), slice.begin, slice.elements),
                              Span::of(group.grad_accumulator(), slice.begin, slice.elements));
    }
}

void GradientPartitions::report_flush(const GradientBucket& bucket) const {
  if (!context_.events.is_on()) return;
  std::vector<NameId> params;
  for (const PartitionedParameter* parameter : bucket.parameters())
    params.push_back(parameter->parameter().name_id);
  report_bucket_flush(context_.events, bucket.communication_dtype(), bucket.elements(),
                      std::move(params));
}

}  // namespace zeroproof
