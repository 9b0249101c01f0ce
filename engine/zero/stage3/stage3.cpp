#include "engine/zero/stage3/stage3.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/zero/stage3/gather_context.h"
#include "engine/zero/stage3/leaf_modules.h"
#include "engine/zero/stages.h"
#include "model/accumulate_grad.h"
#include "zeroproof/internal/engine/hooks/backward_tracker.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {
namespace {

bool is_trained(const PartitionedParameter* parameter) {
  return parameter->parameter().group >= 0;
}

}  // namespace

std::unique_ptr<ZeroOptimizer> make_zero3_optimizer(ZeroContext& context) {
  return std::make_unique<Zero3Optimizer>(context);
}

Zero3Optimizer::Zero3Optimizer(ZeroContext& context)
    : context_(context),
      gatherer_(context),
      modules_(context.module, gatherer_, context.events),
      coordinator_(context, gatherer_),
      linear_(context.autograd, gatherer_,
              context.config.memory_efficient_linear && !context.skips_frames),
      coalesced_(context.parameters.size()) {
  for (Zero3Module* leaf : configured_leaf_modules(context.config, modules_))
    modules_.set_leaf(*leaf);
  hooks_ = std::make_unique<ModuleHooks>(context, modules_, coordinator_, gatherer_);
  make_sub_groups();
  gradients_ = std::make_unique<GradientPartitions>(context, gatherer_, sub_groups_);
  if (context.skips_frames) {
    use_fallback();
  } else {
    mark_persistent_parameters();
    add_leaf_hooks();
  }
}

Zero3Optimizer::~Zero3Optimizer() {
  for (HookHandle& hook : module_hooks_) hook.remove();
  gatherer_.outlive_inflight();
}

void Zero3Optimizer::make_sub_groups() {
  std::int32_t groups = 0;
  for (const ZeroParameter& parameter : context_.parameters)
    groups = std::max(groups, parameter.group + 1);
  for (std::int32_t group = 0; group < groups; ++group) {
    ParameterList members;
    std::int64_t elements = 0;
    for (PartitionedParameter& parameter : gatherer_.parameters()) {
      if (parameter.parameter().group != group) continue;
      members.push_back(&parameter);
      elements += parameter.elements();
      if (elements < context_.config.sub_group_size) continue;
      sub_groups_.emplace_back(context_, std::move(members));
      members = {};
      elements = 0;
    }
    if (!members.empty()) sub_groups_.emplace_back(context_, std::move(members));
  }
}

// docs/spec/zero.md 5: DeepCompile has no module hooks, no persistent parameters and the original
// linear.
void Zero3Optimizer::use_fallback() {
  fallback_ = std::make_unique<EagerFallback>(context_, gatherer_);
  hooks_->remove();
  for (Zero3Module& module : modules_.all()) {
    module.module->set_parameter_observer([this](const Tensor& read) {
      if (PartitionedParameter* parameter = gatherer_.find(read)) fallback_->read(*parameter);
    });
    module_hooks_.push_back(module.module->register_forward_pre_hook([this, &module](const auto&) {
      for (PartitionedParameter* parameter : module.own) fallback_->read(*parameter);
      return TensorList{};
    }));
  }
}

void Zero3Optimizer::release_gathered_parameters() {
  if (fallback_) fallback_->release_gathered();
}
void Zero3Optimizer::set_guard_evaluation(bool is_evaluating) {
  if (fallback_) fallback_->set_guard_evaluation(is_evaluating);
}

// docs/spec/zero.md 3.6: small ones, in the order of modules, as far as the room for them goes.
void Zero3Optimizer::mark_persistent_parameters() {
  const ZeroConfig& config = context_.config;
  std::int64_t total = 0;
  for (PartitionedParameter& parameter : gatherer_.parameters()) {
    const std::int64_t size = parameter.elements();
    if (size > config.stage3_param_persistence_threshold) continue;
    const std::int64_t more = parameter.elements();
    if (more + total > config.stage3_model_persistence_threshold) {
      continue;
    }
    total += parameter.elements();
    parameter.set_persistent(true);
    persistent_.push_back(&parameter);
  }
}

bool Zero3Optimizer::has_gradient_hook(const ZeroParameter& parameter) const {
  if (!parameter.requires_grad || parameter.group < 0) return false;
  auto& self = const_cast<Zero3Optimizer&>(*this);  // lookups only
  const PartitionedParameter* partitioned = &self.gatherer_.of(parameter);
  return std::ranges::none_of(self.modules_.all(), [&](const Zero3Module& module) {
    return module.is_leaf && contains(module.own, partitioned);
  });
}

// Upstream counts idle leaf modules, too (H25).
std::int32_t Zero3Optimizer::extra_expected_hooks() const {
  auto& self = const_cast<Zero3Optimizer&>(*this);  // lookups only
  const auto runs = [this](const PartitionedParameter* parameter) {
    if (parameter->parameter().group < 0) return false;
    if (context_.upstream.counts_idle_leaf_modules) return true;
    const auto node = find_accumulate_grad(parameter->parameter().tensor);
    return node && context_.autograd.will_execute(*node);
  };
  return static_cast<std::int32_t>(
      std::ranges::count_if(self.modules_.all(), [&](const Zero3Module& module) {
        return module.is_leaf && std::any_of(module.own.begin(), module.own.end(), runs);
      }));
}

void Zero3Optimizer::add_leaf_hooks() {
  for (HookHandle& hook : module_hooks_) hook.remove();
  module_hooks_.clear();
  for (Zero3Module& module : modules_.all()) {
    if (!module.is_leaf || module.is_below_leaf) continue;
    module_hooks_.push_back(module.module->register_full_backward_hook(
        [this, &module](const TensorList&, const TensorList&) {
          if (!context_.autograd.local().transforms) on_leaf_backward(module);
          return TensorList{};
        }));
  }
}

// docs/spec/zero.md 3.7: every parameter of the leaf, whether this rank used it or not.
void Zero3Optimizer::on_leaf_backward(Zero3Module& leaf) {
  if (std::ranges::none_of(leaf.own, is_trained)) return;
  run_hook_([this, &leaf] {
    for (PartitionedParameter* parameter : leaf.own) {
      if (!is_trained(parameter)) continue;
      const bool is_missing = !parameter->parameter().tensor.grad().is_defined();
      if (!context_.is_coalescing) {
        gradients_->add(parameter->parameter(), true);
      } else if (is_missing) {
        gradients_->give_zeros(*parameter, true);
      }
    }
  });
}

void Zero3Optimizer::on_forward_begin(bool ran_epilogue) {
  gradients_->on_forward_begin(ran_epilogue);
  if (fallback_) fallback_->begin_forward();
}

// Without a backward to come, parameters gathered ahead for it are not used.
std::int64_t Zero3Optimizer::on_forward_end(bool has_graph) {
  if (fallback_) return fallback_->end_forward(has_graph).value_or(-1);
  const Autograd& autograd = context_.autograd;
  const bool has_backward = autograd.is_grad_enabled() && !autograd.local().transforms;
  if (!context_.upstream.all && !has_backward && hooks_->stack_depth() == 0)
    coordinator_.release_all_unused();
  return -1;
}

void Zero3Optimizer::backward_prologue(std::int64_t graph) {
  const Events::Call reported(context_.events, "z3.backward_prologue");
  if (fallback_) fallback_->start_backward(graph);
}

void Zero3Optimizer::add_gradient(ZeroParameter& parameter) {
  if (context_.is_coalescing) return;
  if (parameter.tensor.impl().grad.is_defined() && gradients_->try_append_fast(parameter)) return;
  gradients_->add(parameter, false);
}

// While coalescing, a whole backward's gradient leaves .grad, so that a failed one is distinct
// from those before.
void Zero3Optimizer::collect_gradients() {
  if (!context_.is_coalescing) return;
  for (const ZeroParameter& parameter : context_.parameters) {
    const Tensor grad = parameter.tensor.grad();
    if (parameter.group < 0 || !grad.is_defined()) continue;
    if (gradients_->is_held(parameter)) continue;  // of tiles before the block
    Tensor& sum = coalesced_[static_cast<std::size_t>(parameter.id.value)];
    const bool is_first = !sum.is_defined();
    if (is_first) {
      sum = grad;
    } else {
      context_.kernels().add(context_.compute(), Span::of(sum), Span::of(grad));
    }
    parameter.tensor.set_grad({});
  }
}

void Zero3Optimizer::flush_coalesced() {
  for (PartitionedParameter& parameter : gatherer_.parameters()) {
    Tensor& sum = coalesced_[static_cast<std::size_t>(parameter.id().value)];
    if (sum.is_defined()) parameter.parameter().tensor.set_grad(sum);
    sum = {};
    const ZeroParameter& whole = parameter.parameter();
    if (whole.tensor.grad().is_defined()) gradients_->add(whole, false);
  }
  reduce_gradients();
}

void Zero3Optimizer::reduce_gradients() {
  const Events::Call reported(context_.events, "z3.independent_gradient_partition_epilogue");
  if (!context_.upstream.all) add_left_gradients();
  gradients_->flush_all();
  gradients_->commit();
  context_.set_epilogue_ran(true);
}

// What another module's use of a leaf's parameter brings after the leaf's hook and its reduction,
// or where the leaf does not run.
void Zero3Optimizer::add_left_gradients() {
  for (const Zero3Module& module : modules_.all()) {
    if (!module.is_leaf || module.is_below_leaf) continue;
    for (PartitionedParameter* parameter : module.own) {
      const ZeroParameter& whole = parameter->parameter();
      const bool is_left = is_trained(parameter) && whole.tensor.grad().is_defined();
      if (is_left && !gradients_->is_held(whole)) gradients_->add(whole, false);
    }
  }
}

void Zero3Optimizer::backward_epilogue() {
  const Events::Call reported(context_.events, "z3.backward_epilogue");
  if (fallback_) return fallback_->end_backward();
  coordinator_.release_backward_leftovers();
}

// Only what was not reduced can be taken back upstream.
bool Zero3Optimizer::abandon_gradients() {
  const bool has_crossed = gradients_->has_pending();
  gradients_->await_reductions();
  gradients_->drop_backward();
  // Where an epilogue failed, no end of a graph task gives back what it would have.
  if (context_.tracker.tasks().empty() && !fallback_)
    coordinator_.release_backward_leftovers(false);
  return context_.upstream.none || !has_crossed;
}

// The update itself takes over everything active (docs/spec/zero.md 2.14).
void Zero3Optimizer::finalize_unmanaged() {}

void Zero3Optimizer::zero_grad() {
  const Events::Call reported(context_.events, "z3.zero_grad");
  context_.set_epilogue_ran(false);
  if (!context_.upstream.abort_leaks_state) gradients_->drop_backward();
  context_.clear_grads();
  std::ranges::fill(coalesced_, Tensor());
  gradients_->start_window();
}

void Zero3Optimizer::visit_state(StateVisitor& visitor) const {
  gradients_->visit_state(visitor);
  for (const Tensor& sum : coalesced_) {
    visitor.number(sum.is_defined() ? 1 : 0);
    if (sum.is_defined()) visitor.values(Span::of(sum));
  }
}

std::vector<GradientSlice> Zero3Optimizer::gradient_slices() const {
  std::vector<GradientSlice> slices;
  for (const SubGroup& group : sub_groups_)
    for (std::size_t i = 0; i < group.parameters().size(); ++i) {
      const PartitionedParameter& parameter = *group.parameters()[i];
      const FlatRange own = group.own(i);
      if (own.elements == 0) continue;
      slices.push_back({parameter.id(), parameter.own_begin(),
                        Span::of(group.grad_accumulator(), own.begin, own.elements)});
    }
  return slices;
}

// No epilogue follows a backward that failed, also inside one of another engine, nor one of a
// function transform.
// What skipped frames gathered stays with the graphs that claim it.
void Zero3Optimizer::on_graph_task_end(bool raised) {
  const BackwardTracker& tracker = context_.tracker;
  coordinator_.end_task(raised);
  if (!tracker.tasks().empty() || fallback_) return;
  const bool is_failed = tracker.has_failed_task() && !context_.upstream.abort_leaks_state;
  const bool is_transform = tracker.is_outermost_transform() && !context_.upstream.all;
  if (is_failed || is_transform) coordinator_.release_backward_leftovers(false);
}

void Zero3Optimizer::gathered_parameters(const TensorList& parameters,
                                         std::optional<int> modifier_rank,
                                         const std::function<void()>& body) {
  GatherContext gathered(context_, gatherer_, parameters, modifier_rank);
  body();
  gathered.exit();
}

Zero3Module& Zero3Optimizer::known(nn::Module& module) {
  Zero3Module* found = modules_.find(module);
  require(found != nullptr, "the module is not part of this engine's model");
  return *found;
}

void Zero3Optimizer::set_leaf_module(nn::Module& module) {
  modules_.set_leaf(known(module));
  register_module_hooks();
}

void Zero3Optimizer::register_external_parameter(nn::Module& module, const Tensor& parameter) {
  PartitionedParameter* partitioned = gatherer_.find(parameter);
  require(partitioned != nullptr, "the tensor is not a parameter of this engine's module");
  coordinator_.add_external(known(module), *partitioned);
}

void Zero3Optimizer::register_module_hooks() {
  hooks_->remove();
  hooks_->add();
  add_leaf_hooks();
  if (coordinator_.trace().mode() != TraceMode::invalid) coordinator_.invalidate_trace();
}

void Zero3Optimizer::remove_module_hooks() {
  hooks_->remove();
  for (HookHandle& hook : module_hooks_) hook.remove();
  module_hooks_.clear();
}

void Zero3Optimizer::report_parameters() {
  if (!context_.events.is_on()) return;
  for (const PartitionedParameter& parameter : gatherer_.parameters()) {
    HookEvent event;
    event.kind = EventKind::zparam_status;
    event.name = context_.events.name(zero_param_status_name(parameter.status()));
    event.param = parameter.parameter().name_id;
    event.active_modules = parameter.count_using_modules();
    event.is_persistent = parameter.is_persistent();
    event.numel = parameter.elements();
    context_.events.send(std::move(event));
  }
}

}  // namespace zeroproof
