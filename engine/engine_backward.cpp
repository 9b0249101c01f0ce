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

Tensor Engine::Core::backward(const Tensor& loss, const BackwardArguments& arguments) {
  const Events::Call call(context_.events, "engine.backward");
  check_scalar(loss, EngineErrorId::backward_of_invalid_loss);
  loss_factor_.set_scales_wrt_gas(arguments.scale_wrt_gas);
  Tensor returned = [&] {
    const GradMode no_grad(context_.autograd, false);
    return arguments.scale_wrt_gas && gas() != 1.0 ? div(context_.autograd, loss, gas()) : loss;
  }();
  const Tensor differentiated = scaled(context_.autograd, loss, loss_factor_.of_managed_loss());
  run_backward(differentiated, arguments);
  return returned;
}

void Engine::Core::run_backward(const Tensor& loss, const BackwardArguments& arguments) {
  GlobalState& global = context_.autograd.global();
  const ManagedDivisor divisor(global,
                               arguments.scale_wrt_gas ? std::optional(gas()) : std::nullopt);
  tracker_.begin_backward();
  ++global.managed_backwards;
  // A graph of the gradient is one of its own.
  const bool retains = arguments.retain_graph || arguments.create_graph;
  try {
    context_.autograd.backward(loss,
                               {.create_graph = arguments.create_graph, .retain_graph = retains});
    epilogue();
  } catch (...) {
    --global.managed_backwards;
    const bool is_leaking = context_.upstream.abort_leaks_state;
    if (is_leaking && is_exact()) throw;
    tracker_.end_backward(true);
    policy_->on_backward_end(*this, true);
    if (is_leaking) throw;
    if (!is_zero()) abandon_gradients();
    throw;
  }
  tracker_.end_backward(false);
  --global.managed_backwards;
  policy_->on_backward_end(*this, false);
}

bool Engine::Core::is_in_transform() const {
  return context_.autograd.local().transforms != nullptr;
}

Tensor Engine::Core::scale(const Tensor& loss) {
  const Events::Call call(context_.events, "engine.scale");
  check_scalar(loss, EngineErrorId::scale_of_invalid_loss);
  Tensor result = scaled(context_.autograd, loss, context_.loss_scaler.scale());
  is_scale_called_ = true;
  return result;
}

bool Engine::Core::needs_scaler() const {
  return context_.loss_scaler.is_needed(!context_.upstream.static_scale_needs_no_scaler);
}

// What is in the window already has to be unscaled by the scale that it got.
Result<void> Engine::Core::override_loss_scale(double loss_scale) {
  const bool is_other = loss_scale != context_.loss_scaler.scale();
  const bool is_inside = tracker_.is_backward_running() || !tracker_.tasks().empty();
  if (is_other && (is_inside || has_scaled_gradients_ || has_unreduced_gradients_))
    return fail(ErrorCode::usage, "override_loss_scale(" + std::to_string(loss_scale) +
                                      ") in the middle of a window: it has gradients scaled by " +
                                      std::to_string(context_.loss_scaler.scale()) +
                                      "; call step() or zero_grad() first");
  const bool had_factor = loss_factor_.is_needed_at_leaves();
  auto set = context_.loss_scaler.set_external(loss_scale);
  if (!had_factor && loss_factor_.is_needed_at_leaves())
    register_gradient_hooks();  // where no gradient was scaled
  return set;
}

// --- hooks -------------------------------------------------------------------------------------

// The hook path: what needs no thought comes first, and by tail calls.
void Engine::Core::on_gradient(ZeroParameter& parameter) {
  has_unreduced_gradients_ = true;
  if (has_no_observer_ && policy_->can_skip_policy(context_.autograd.current_graph_task()))
      [[likely]]
    return optimizer_->add_gradient(parameter);
  on_gradient_slowly(parameter);
}

void Engine::Core::on_gradient_slowly(ZeroParameter& parameter) {
  if (!has_no_observer_) return on_observed_gradient(parameter);
  const bool refreshes = policy_->before_gradient(*this);
  optimizer_->add_gradient(parameter);
  policy_->after_gradient(*this, refreshes);
}

// The same with what it says about itself.
void Engine::Core::on_observed_gradient(ZeroParameter& parameter) {
  HookEvent event;
  event.kind = EventKind::param_post_acc;
  event.param = parameter.name_id;
  context_.events.send(std::move(event));
  const Events::Call call(context_.events, "grad_hook", parameter.name_id);
  const bool refreshes = policy_->before_gradient(*this);
  optimizer_->add_gradient(parameter);
  policy_->after_gradient(*this, refreshes);
}

Tensor Engine::Core::on_leaf_gradient(const Tensor& grad) {
  if (is_in_transform() || !grad.is_defined()) return {};
  if (loss_factor_.is_backward_manual()) refuse_manual_backward();  // it brought no gradient
  const double factor = loss_factor_.at_leaf();
  has_unreduced_gradients_ = true;  // stages 0 and 1 may have no hook after it to say so
  return factor == 1.0 ? Tensor() : mul(context_.autograd, grad, factor);
}

// --- HookHost ----------------------------------------------------------------------------------

GraphTaskId Engine::Core::current_graph_task() const {
  return context_.autograd.current_graph_task();
}

void Engine::Core::queue_callback() {
  if (!context_.events.is_on())
    return context_.autograd.queue_callback([this] { policy_->on_final_callback(*this); });
  const std::string label = std::to_string(context_.events.take_callback_number()) + kCallbackLabel;
  context_.autograd.queue_callback([this, label] { run_observed_callback(label); });
  context_.events.send(EventKind::cb_queue, label);
}

void Engine::Core::run_observed_callback(const std::string& label) {
  context_.events.send(EventKind::cb_begin, label);
  try {
    policy_->on_final_callback(*this);
  } catch (...) {
    HookEvent end;
    end.kind = EventKind::cb_end;
    end.name = context_.events.name(label);
    context_.events.write_only(std::move(end));
    throw;
  }
  context_.events.send(EventKind::cb_end, label);
}

std::int32_t Engine::Core::count_expected_hooks() {
  std::vector<const Node*> seen;
  for (const ZeroParameter& parameter : context_.parameters) {
    if (parameter.group < 0 || !optimizer_->has_gradient_hook(parameter)) continue;
    const auto node = parameter.tensor.impl().accumulate_grad.lock();
    if (!node || std::ranges::find(seen, node.get()) != seen.end()) continue;
    if (context_.autograd.will_execute(*node)) seen.push_back(node.get());
  }
  const auto count = static_cast<std::int32_t>(seen.size());
  if (context_.events.is_on())
    context_.events.mark("count_used_parameters:" + std::to_string(count));
  return count + optimizer_->extra_expected_hooks();
}

// docs/spec/zero.md 2.8.
void Engine::Core::run_post_hook() {
  const Events::Call call(context_.events, "engine.backward_post_hook");
  if (is_in_transform() || tracker_.is_backward_running() || policy_->skips_manual_epilogue())
    return;
  const bool is_once = is_exact() && context_.upstream.callback_once_per_forward;
  if (is_once && ran_epilogue_) return;
  if (needs_scaler() && !is_scale_called_) {
    throw EngineError(EngineErrorId::backward_without_loss_scaling,
                      "Loss scaling is required here (scale " +
                          std::to_string(context_.loss_scaler.scale()) +
                          "): call engine.scale(loss).backward() or engine.backward(loss)");
  }
  epilogue();
  has_manual_epilogue_ = true;
  if (!is_exact()) end_manual_backward(false);
}

// At the end of its outermost graph task: each checkpoint around a forward has an epilogue of its
// own, and they are one backward of the user's, with one scale. A later one that fails cannot take
// back what the first ones have brought.
void Engine::Core::end_manual_backward(bool raised) {
  if (!std::exchange(has_manual_epilogue_, false)) return;
  is_scale_called_ = false;
  if (raised && !context_.upstream.abort_leaks_state) is_incomplete_ = true;
}

void Engine::Core::abandon_gradients() {
  if (context_.upstream.abort_leaks_state) return;
  context_.events.mark("gradients_abandoned");
  has_unreduced_gradients_ = false;
  is_scale_called_ = false;
  const bool is_restartable = optimizer_->abandon_gradients();
  if (!policy_->demands_restart() || is_restartable) return;
  is_incomplete_ = true;
  throw EngineError(EngineErrorId::incomplete_backward,
                    "An aborted backward already contributed gradients: they cannot be taken back; "
                    "restart from a checkpoint");
}

// --- epilogue ----------------------------------------------------------------------------------

void Engine::Core::epilogue() {
  const Events::Call call(context_.events, "engine.backward_epilogue");
  has_unreduced_gradients_ = false;
  optimizer_->collect_gradients();
  if (!context_.is_no_sync && !context_.is_coalescing) {
    const Events::Call reducing(context_.events, "engine.allreduce_gradients");
    refresh_boundary();
    optimizer_->reduce_gradients();
    ran_epilogue_ = true;
  }
  count_backward();
  if (!is_zero()) return;
  optimizer_->backward_epilogue();
  policy_->on_epilogue(*this);
}

// One whose epilogue failed is none, and a manual one with several is one.
void Engine::Core::count_backward() {
  has_scaled_gradients_ = true;
  const bool is_counted = has_manual_epilogue_ && !tracker_.is_backward_running();
  if (is_counted) return;
  ++counters_.backwards;
}

// --- GraphTaskListener -------------------------------------------------------------------------

void Engine::Core::on_graph_task_begin(GraphTaskId task, bool keeps_graph) {
  const bool is_transform = is_in_transform();
  tracker_.begin_task(task, {.keeps_graph = keeps_graph, .is_transform = is_transform});
  if (is_transform) return;
  if (!context_.upstream.stale_boundary_before_prologue) refresh_boundary();
  if (!has_leaf_hooks_ && loss_factor_.in_managed_backward() != 1.0) register_gradient_hooks();
  policy_->on_graph_task_begin(*this, task);
}

void Engine::Core::on_graph_task_end(GraphTaskId task, bool raised) {
  const BackwardTracker::OpenTask ended = tracker_.innermost();
  const bool is_transform = ended.options.is_transform;
  const bool is_outermost = tracker_.tasks().size() == 1;
  const bool is_users = !is_transform && !ended.is_inside_forward && is_outermost;
  // A backward that fails before any hook of ours has had its scale all the same: the next one
  // needs another.
  const bool is_left = context_.upstream.abort_leaks_state;
  if (raised && is_users && !is_left) is_scale_called_ = false;
  if (is_outermost) end_manual_backward(raised);
  try {
    if (!is_transform) policy_->on_graph_task_end(*this, task, raised);
  } catch (...) {
    tracker_.end_task(task, raised);
    throw;
  }
  tracker_.end_task(task, raised);
  optimizer_->on_graph_task_end(raised);
}

void Engine::Core::visit_state(StateVisitor& visitor) const {
  const auto bit = [](bool is_set, int place) { return std::uint64_t{is_set} << place; };
  visitor.number(bit(has_unreduced_gradients_, 0) | bit(ran_epilogue_, 1) |
                 bit(is_scale_called_, 2) | bit(tracker_.is_backward_running(), 3) |
                 bit(is_incomplete_, 4) | bit(context_.is_boundary, 5) |
                 bit(has_manual_epilogue_, 6) | tracker_.tasks().size() << 8);
  const BackwardState hooks = policy_->state();
  visitor.number(bit(hooks.is_callback_queued, 0) | bit(hooks.is_backward_seen_this_step, 1) |
                 bit(hooks.ran_epilogue_this_backward, 2) |
                 static_cast<std::uint64_t>(hooks.active_depth) << 8);
  visitor.number(static_cast<std::uint64_t>(hooks.hooks_fired) << 32 |
                 static_cast<std::uint32_t>(hooks.remaining_hooks));
  optimizer_->visit_state(visitor);
}

}  // namespace zeroproof
