// engine.backward, the gradient hooks and the epilogue (docs/spec/zero.md 1.4, 2.6 to 2.10).
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/engine_core.h"
#include "model/check.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// What divides the loss of an engine.backward, while it runs.
class ManagedDivisor {
 public:
  ManagedDivisor(GlobalState& global, std::optional<double> divisor)
      : global_(global), outer_(std::exchange(global.managed_divisor, divisor)) {}
  ~ManagedDivisor() { global_.managed_divisor = outer_; }
  ManagedDivisor(const ManagedDivisor&) = delete;
  ManagedDivisor& operator=(const ManagedDivisor&) = delete;

 private:
  GlobalState& global_;
  std::optional<double> outer_;
};

constexpr const char* kCallbackLabel =
    ":BackwardHookStateManager.queue_post_backward_callback._run_post_backward";

}  // namespace

// --- managed and manual backward ---------------------------------------------------------------

void Engine::Core::check_scalar(const Tensor& loss, EngineErrorId error) const {
  if (loss.is_defined() && loss.numel() == 1 && (loss.grad_fn() || loss.requires_grad())) return;
  throw EngineError(error, "a loss has to be a scalar tensor with a grad_fn: it has " +
                               std::to_string(loss.is_defined() ? loss.numel() : 0) +
                               " elements; reduce it, or use output.backward(grad)");
}

// Half precision could not hold the product.
Tensor Engine::Core::scaled(const Tensor& loss, double factor) {
  if (factor == 1.0) return loss;
  const bool is_half = item_bytes(loss.dtype()) == 2;
  const Tensor wide = is_half ? to(context.autograd, loss, DType::float32) : loss;
  return mul(context.autograd, wide, factor);
}

Tensor Engine::Core::backward(const Tensor& loss, const BackwardArguments& arguments) {
  const Events::Call call(context.events, "engine.backward");
  check_scalar(loss, EngineErrorId::backward_of_invalid_loss);
  scales_wrt_gas_ = arguments.scale_wrt_gas;
  double gas_factor = arguments.scale_wrt_gas ? 1.0 / gas() : 1.0;
  const Tensor returned = [&] {
    const GradMode no_grad(context.autograd, false);
    return arguments.scale_wrt_gas && gas() != 1.0 ? div(context.autograd, loss, gas()) : loss;
  }();
  const bool is_unscaled =
      config.stage == 0 && config.fp16.enabled && context.upstream.stage0_fp16_loss_unscaled;
  const double loss_scale = is_unscaled ? 1.0 : context.loss_scaler.scale();
  if (!context.upstream.explicit_epilogue_without_prologue &&
      !context.upstream.stale_boundary_before_prologue)
    refresh_boundary();
  const Tensor differentiated =
      scaled(loss, divides_managed_loss() ? loss_scale * gas_factor : loss_scale);
  run_backward(differentiated, arguments);
  return returned;
}

void Engine::Core::run_backward(const Tensor& loss, const BackwardArguments& arguments) {
  GlobalState& global = context.autograd.global();
  const ManagedDivisor divisor(global,
                               arguments.scale_wrt_gas ? std::optional(gas()) : std::nullopt);
  ++running_;
  ++global.managed_backwards;
  policy->on_backward_begin(*this);
  // A graph of the gradient is one of its own.
  const bool retains = arguments.retain_graph || arguments.create_graph;
  try {
    context.autograd.backward(loss,
                              {.create_graph = arguments.create_graph, .retain_graph = retains});
    epilogue();
  } catch (...) {
    --global.managed_backwards;
    const bool is_leaking = context.upstream.abort_leaks_state;
    if (is_leaking && is_exact()) throw;
    policy->on_backward_end(*this, true);  // upstream's policies know whether they leave their mark
    running_ = policy->is_backward_running() ? running_ : running_ - 1;
    if (is_leaking) throw;
    if (!is_zero()) abandon_gradients();
    throw;
  }
  --running_;
  --global.managed_backwards;
  policy->on_backward_end(*this, false);
}

bool Engine::Core::is_in_transform() const {
  return context.autograd.local().transforms != nullptr;
}

Tensor Engine::Core::scale(const Tensor& loss) {
  const Events::Call call(context.events, "engine.scale");
  check_scalar(loss, EngineErrorId::scale_of_invalid_loss);
  Tensor result = scaled(loss, context.loss_scaler.scale());
  is_scale_called_ = true;
  return result;
}

bool Engine::Core::needs_scaler() const {
  return context.loss_scaler.is_needed(!context.upstream.static_scale_needs_no_scaler);
}

// What is in the window already has to be unscaled by the scale that it got.
Result<void> Engine::Core::override_loss_scale(double loss_scale) {
  const bool is_other = loss_scale != context.loss_scaler.scale();
  const bool is_inside = is_running() || !tasks_.empty();
  if (is_other && (is_inside || has_scaled_gradients_ || has_unreduced_gradients_))
    return fail(ErrorCode::usage, "override_loss_scale(" + std::to_string(loss_scale) +
                                      ") in the middle of a window: it has gradients scaled by " +
                                      std::to_string(context.loss_scaler.scale()) +
                                      "; call step() or zero_grad() first");
  const bool had_factor = has_leaf_factor();
  const auto set = context.loss_scaler.set_external(loss_scale);
  if (!had_factor && has_leaf_factor()) register_gradient_hooks();  // where nothing was scaled
  return set;
}

// --- hooks -------------------------------------------------------------------------------------

// The hook path: what needs no thought comes first, and by tail calls.
void Engine::Core::on_gradient(ZeroParameter& parameter) {
  has_unreduced_gradients_ = true;
  if (has_no_observer_ && policy->can_skip_policy(context.autograd.current_graph_task())) [[likely]]
    return optimizer->add_gradient(parameter);
  on_gradient_slowly(parameter);
}

void Engine::Core::on_gradient_slowly(ZeroParameter& parameter) {
  if (!has_no_observer_) return on_observed_gradient(parameter);
  const bool refreshes = policy->before_gradient(*this);
  optimizer->add_gradient(parameter);
  policy->after_gradient(*this, refreshes);
}

// The same with what it says about itself.
void Engine::Core::on_observed_gradient(ZeroParameter& parameter) {
  HookEvent event;
  event.kind = EventKind::param_post_acc;
  event.param = parameter.name_id;
  context.events.send(std::move(event));
  const Events::Call call(context.events, "grad_hook", parameter.name_id);
  const bool refreshes = policy->before_gradient(*this);
  optimizer->add_gradient(parameter);
  policy->after_gradient(*this, refreshes);
}

Tensor Engine::Core::on_leaf_gradient(const Tensor& grad) {
  if (is_in_transform() || !grad.is_defined()) return {};
  const double factor = leaf_factor();  // what is refused here has brought nothing
  has_unreduced_gradients_ = true;      // stages 0 and 1 may have no hook behind it to say so
  return factor == 1.0 ? Tensor() : mul(context.autograd, grad, factor);
}

// What a contribution still lacks, so that along every path from a loss it has got the accumulation
// steps' factor and the loss scale once (P19): nothing in a backward() of any engine (H22: what
// comes before a prologue is not divided); both inside a forward, where the loss is not known yet
// (H10); the steps' factor in a manual backward, even before its prologue (H26).
double Engine::Core::leaf_factor() const {
  const bool is_pre_user = !tasks_.empty() ? tasks_.back().is_pre_user : context.is_inside_forward;
  if (is_pre_user) {
    if (context.upstream.stale_boundary_before_prologue) return 1.0;
    return context.loss_scaler.scale() / gas();
  }
  const bool is_before_prologue = !tasks_.empty() && !tasks_.back().has_prologue;
  if (context.autograd.global().managed_backwards > 0) {
    const bool is_undivided = is_running() && scales_wrt_gas_ && is_before_prologue &&
                              context.upstream.explicit_epilogue_without_prologue;
    return is_undivided ? gas() : factor_in_managed_backward();
  }
  refuse_manual_backward();
  const bool is_forgotten = is_before_prologue && context.upstream.hooks_before_prologue_recounted;
  return is_forgotten ? 1.0 : 1.0 / gas();
}

// A loss of several engines is divided by the steps of the one whose backward() runs; the others
// have their own. N6 leaves it at that, and H8 divides elsewhere.
double Engine::Core::factor_in_managed_backward() const {
  const std::optional<double> divisor = context.autograd.global().managed_divisor;
  const bool is_left =
      context.upstream.divides_by_running_engine || context.upstream.divides_at_outputs;
  return divisor && !is_left ? *divisor / gas() : 1.0;
}

bool Engine::Core::divides_at_outputs() const {
  if (!context.upstream.divides_at_outputs) return false;
  if (!context.upstream.divides_by_running_engine) return scales_wrt_gas_;
  return context.autograd.global().managed_backwards == 0;  // the loss is not divided already
}

// --- HookHost ----------------------------------------------------------------------------------

GraphTaskId Engine::Core::current_graph_task() const {
  return context.autograd.current_graph_task();
}

void Engine::Core::queue_callback() {
  if (!context.events.is_on())
    return context.autograd.queue_callback([this] { policy->on_final_callback(*this); });
  const std::string label = std::to_string(context.events.take_callback_number()) + kCallbackLabel;
  context.autograd.queue_callback([this, label] { run_observed_callback(label); });
  context.events.send(EventKind::cb_queue, label);
}

void Engine::Core::run_observed_callback(const std::string& label) {
  context.events.send(EventKind::cb_begin, label);
  try {
    policy->on_final_callback(*this);
  } catch (...) {
    HookEvent end;
    end.kind = EventKind::cb_end;
    end.name = context.events.name(label);
    context.events.write_only(std::move(end));
    throw;
  }
  context.events.send(EventKind::cb_end, label);
}

std::int32_t Engine::Core::count_expected_hooks() {
  std::vector<const Node*> seen;
  for (const ZeroParameter& parameter : context.parameters) {
    if (parameter.group < 0 || !optimizer->has_gradient_hook(parameter)) continue;
    const auto node = parameter.tensor.impl().accumulate_grad.lock();
    if (!node || std::ranges::find(seen, node.get()) != seen.end()) continue;
    if (context.autograd.will_execute(*node)) seen.push_back(node.get());
  }
  const auto count = static_cast<std::int32_t>(seen.size());
  if (context.events.is_on()) context.events.mark("count_used_parameters:" + std::to_string(count));
  return count + optimizer->extra_expected_hooks();
}

// docs/spec/zero.md 2.8.
void Engine::Core::run_post_hook() {
  const Events::Call call(context.events, "engine.backward_post_hook");
  if (is_in_transform() || is_running() || policy->skips_manual_epilogue()) return;
  const bool is_once = is_exact() && context.upstream.callback_once_per_forward;
  if (is_once && ran_epilogue_) return;
  if (needs_scaler() && !is_scale_called_) {
    throw EngineError(EngineErrorId::backward_without_loss_scaling,
                      "Loss scaling is required here (scale " +
                          std::to_string(context.loss_scaler.scale()) +
                          "): call engine.scale(loss).backward() or engine.backward(loss)");
  }
  is_scale_called_ = false;
  epilogue();
}

void Engine::Core::abandon_gradients() {
  if (context.upstream.abort_leaks_state) return;
  context.events.mark("gradients_abandoned");
  has_unreduced_gradients_ = false;
  is_scale_called_ = false;
  const bool is_restartable = optimizer->abandon_gradients();
  if (!policy->demands_restart() || is_restartable) return;
  must_restart_ = true;
  throw EngineError(EngineErrorId::incomplete_backward,
                    "An aborted backward already contributed gradients: they cannot be taken back; "
                    "restart from a checkpoint");
}

// --- epilogue ----------------------------------------------------------------------------------

void Engine::Core::epilogue() {
  const Events::Call call(context.events, "engine.backward_epilogue");
  has_unreduced_gradients_ = false;
  optimizer->collect_gradients();
  if (!is_no_sync_ && !context.is_coalescing) {
    const Events::Call reducing(context.events, "engine.allreduce_gradients");
    refresh_boundary();
    optimizer->reduce_gradients();
    ran_epilogue_ = true;
  }
  count_backward();
  if (!is_zero()) return;
  optimizer->backward_epilogue();
  policy->on_epilogue(*this);
}

// One whose epilogue failed is none.
void Engine::Core::count_backward() {
  ++counters.backwards;
  has_scaled_gradients_ = true;
}

// --- GraphTaskListener -------------------------------------------------------------------------

void Engine::Core::on_graph_task_begin(GraphTaskId task, bool) {
  const bool begins_in_forward = !open_forwards_.empty() && open_forwards_.back() == tasks_.size();
  const bool is_nested_in_one = !tasks_.empty() && tasks_.back().is_pre_user;
  tasks_.push_back({.id = task,
                    .is_pre_user = begins_in_forward || is_nested_in_one,
                    .is_transform = is_in_transform(),
                    .has_prologue = !tasks_.empty() && tasks_.back().has_prologue});
  if (tasks_.back().is_transform) return;
  if (!has_leaf_hooks_ && factor_in_managed_backward() != 1.0) register_gradient_hooks();
  policy->on_graph_task_begin(*this, task);
}

void Engine::Core::on_graph_task_end(GraphTaskId task, bool raised) {
  ZP_CHECK(!tasks_.empty() && tasks_.back().id == task, "graph tasks of a process nest");
  const bool is_transform = tasks_.back().is_transform;
  const bool is_outermost = tasks_.size() == 1;
  const bool is_users = !is_transform && !tasks_.back().is_pre_user && is_outermost;
  tasks_.pop_back();
  // A backward that fails before any hook of ours has had its scale all the same: the next one
  // needs another.
  const bool is_left = context.upstream.abort_leaks_state;
  if (raised && is_users && !is_left) is_scale_called_ = false;
  if (!is_transform) policy->on_graph_task_end(*this, task, raised);
}

void Engine::Core::visit_state(StateVisitor& visitor) const {
  const auto bit = [](bool is_set, int place) { return std::uint64_t{is_set} << place; };
  visitor.number(bit(has_unreduced_gradients_, 0) | bit(ran_epilogue_, 1) |
                 bit(is_scale_called_, 2) | bit(is_running(), 3) | bit(must_restart_, 4) |
                 bit(context.is_boundary, 5) | tasks_.size() << 8);
  const BackwardState hooks = policy->state();
  visitor.number(bit(hooks.is_callback_queued, 0) | bit(hooks.is_backward_seen_this_step, 1) |
                 bit(hooks.ran_epilogue_this_backward, 2) |
                 static_cast<std::uint64_t>(hooks.active_depth) << 8);
  visitor.number(static_cast<std::uint64_t>(hooks.hooks_fired) << 32 |
                 static_cast<std::uint32_t>(hooks.remaining_hooks));
  optimizer->visit_state(visitor);
}

}  // namespace zeroproof
