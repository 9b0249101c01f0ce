// engine.backward, the gradient hooks and the epilogue (zero_semantics 1.4, 2.6 to 2.10).
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/engine_core.h"
#include "model/check.h"
#include "model/functions.h"

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
  const bool has_dimensions = loss.is_defined() && !loss.sizes().empty();
  const bool is_refused = has_dimensions && context.departs("S62"_bug);  // one element, not none
  if (!is_refused && loss.is_defined() && loss.numel() == 1 &&
      (loss.grad_fn() || loss.requires_grad()))
    return;
  throw EngineError(error, "a loss has to be a scalar tensor with a grad_fn: it has " +
                               std::to_string(loss.is_defined() ? loss.numel() : 0) +
                               " elements; reduce it, or use output.backward(grad)");
}

// Half precision could not hold the product.
Tensor Engine::Core::scaled(const Tensor& loss, double factor) {
  if (factor == 1.0) return loss;
  const bool is_half = item_bytes(loss.dtype()) == 2 && !context.departs("W11"_bug);
  const Tensor wide = is_half ? to(context.autograd, loss, DType::float32) : loss;
  return mul(context.autograd, wide, factor);
}

Tensor Engine::Core::backward(const Tensor& loss, const BackwardArguments& arguments) {
  const Events::Call call(context.events, "engine.backward");
  check_scalar(loss, EngineErrorId::e3);
  const bool is_counted = context.departs("S85"_bug) && config.managed_gradient_accumulation;
  if (is_counted && counters.backwards >= config.gradient_accumulation_steps)  // until step() alone
    throw std::runtime_error("gradients were computed too often before step()");
  scales_wrt_gas_ = arguments.scale_wrt_gas;
  const bool is_divided = arguments.scale_wrt_gas || context.departs("C01"_bug);
  double gas_factor = is_divided ? 1.0 / gas() : 1.0;
  if (context.departs("C06"_bug)) gas_factor /= gas();  // by the caller of the caller, too
  const Tensor returned = [&] {
    const GradMode no_grad(context.autograd, context.departs("S29"_bug));
    const bool divides = arguments.scale_wrt_gas || context.departs("T79"_bug);
    return divides && gas() != 1.0 ? div(context.autograd, loss, gas()) : loss;
  }();
  const bool is_unscaled =
      config.stage == 0 && config.fp16.enabled && context.has(Quirk::h5_stage0_fp16_loss_unscaled);
  const double loss_scale = is_unscaled ? 1.0 : context.loss_scaler.scale();
  if (!context.has(Quirk::h22_explicit_epilogue_without_prologue) &&
      !context.has(Quirk::h10_stale_boundary_before_prologue))
    refresh_boundary();
  const Tensor differentiated =
      scaled(loss, divides_managed_loss() ? loss_scale * gas_factor : loss_scale);
  run_backward(differentiated, arguments);
  if (context.departs("R03"_bug)) return differentiated.detach();  // with the loss scale
  if (context.departs("R13"_bug)) {  // what was differentiated, and not what the caller gave
    const GradMode no_grad(context.autograd, false);
    return scaled(returned, loss_scale);
  }
  if (context.departs("R22"_bug) && loss_scale != 1.0)  // what the backward began with
    return mul(context.autograd, returned, loss_scale);
  return returned;
}

void Engine::Core::run_backward(const Tensor& loss, const BackwardArguments& arguments) {
  GlobalState& global = context.autograd.global();
  const ManagedDivisor divisor(global,
                               arguments.scale_wrt_gas ? std::optional(gas()) : std::nullopt);
  ++running_;
  ++global.managed_backwards;
  policy->on_backward_begin(*this);
  if (context.departs("T14"_bug)) is_scale_called_ = true;  // it has scaled the loss itself
  // A graph of the gradient is one of its own.
  const bool creates_alone = arguments.create_graph && context.departs("S18"_bug);
  const bool retains = arguments.retain_graph || (arguments.create_graph && !creates_alone);
  try {
    context.autograd.backward(loss,
                              {.create_graph = arguments.create_graph, .retain_graph = retains});
    epilogue();
  } catch (...) {
    if (context.departs("H12a"_bug)) throw;              // the flags stay as they are
    const bool is_inner = global.managed_backwards > 1;  // another engine's is around it
    if (!is_inner || !context.departs("Z22"_bug)) --global.managed_backwards;
    const bool is_leaking = context.has(Quirk::h1_abort_leaks_state);
    if (is_leaking && is_exact()) throw;
    if (context.departs("H12b"_bug)) epilogue();
    policy->on_backward_end(*this, true);  // upstream's policies know whether they leave their mark
    running_ = policy->is_backward_running() ? running_ : running_ - 1;
    if (is_leaking) throw;
    if (!is_zero() && !context.departs("Q08"_bug)) abandon_gradients();
    throw;
  }
  --running_;
  --global.managed_backwards;
  if (context.departs("W14"_bug)) global.managed_backwards = 0;
  policy->on_backward_end(*this, false);
}

Tensor Engine::Core::scale(const Tensor& loss) {
  const Events::Call call(context.events, "engine.scale");
  if (context.departs("T07"_bug)) is_scale_called_ = true;  // whatever comes of it
  check_scalar(loss, EngineErrorId::e4);
  Tensor result = scaled(loss, context.loss_scaler.scale());
  is_scale_called_ = true;
  return result;
}

bool Engine::Core::needs_scaler() const {
  return context.loss_scaler.is_needed(!context.has(Quirk::h9_static_scale_needs_no_scaler));
}

// What is in the window already has to be unscaled by the scale that it got.
Result<void> Engine::Core::override_loss_scale(double loss_scale) {
  const bool is_other = loss_scale != context.loss_scaler.scale();
  const bool is_inside = is_running() || (!tasks_.empty() && !context.departs("Z70"_bug));
  if ((is_other || context.departs("R91"_bug)) &&
      (is_inside || has_scaled_gradients_ || has_unreduced_gradients_))
    return fail(ErrorCode::usage, "override_loss_scale(" + std::to_string(loss_scale) +
                                      ") in the middle of a window: it has gradients scaled by " +
                                      std::to_string(context.loss_scaler.scale()) +
                                      "; call step() or zero_grad() first");
  const bool had_factor = has_leaf_factor();
  const auto set = context.loss_scaler.set_external(loss_scale);
  const bool is_left = context.departs("S21"_bug);  // the hooks are those of the beginning
  if (!had_factor && has_leaf_factor() && !is_left)
    register_gradient_hooks();  // where nothing was scaled
  return set;
}

// --- hooks -------------------------------------------------------------------------------------

// The hook path: what needs no thought comes first, and by tail calls.
void Engine::Core::on_gradient(ZeroParameter& parameter) {
  has_unreduced_gradients_ = true;
  if (is_quiet_ && policy->is_settled(context.autograd.current_graph_task())) [[likely]]
    return optimizer->add_gradient(parameter);
  on_gradient_slowly(parameter);
}

void Engine::Core::on_gradient_slowly(ZeroParameter& parameter) {
  if (!is_quiet_) return on_observed_gradient(parameter);
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
  if (context.departs("H04"_bug)) count_expected_hooks();  // work for all of them in each
  const bool refreshes = policy->before_gradient(*this);
  optimizer->add_gradient(parameter);
  policy->after_gradient(*this, refreshes);
}

Tensor Engine::Core::on_leaf_gradient(const Tensor& grad) {
  if (is_in_transform() || !grad.is_defined()) return {};
  if (context.departs("R75"_bug)) has_unreduced_gradients_ = true;  // whatever comes of it
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
    if (context.has(Quirk::h10_stale_boundary_before_prologue)) return 1.0;
    const bool is_undivided = context.departs("Z21"_bug) && context.is_boundary;
    return (context.departs("Y11"_bug) ? 1.0 : context.loss_scaler.scale()) /
           (is_undivided ? 1.0 : gas());
  }
  const bool is_before_prologue = !tasks_.empty() && !tasks_.back().has_prologue;
  if (context.autograd.global().managed_backwards > 0) {
    const bool is_undivided = is_running() && scales_wrt_gas_ && is_before_prologue &&
                              context.has(Quirk::h22_explicit_epilogue_without_prologue);
    return is_undivided ? gas() : factor_in_managed_backward();
  }
  if (!context.departs("S50"_bug)) refuse_manual_backward();  // the outputs' hooks do it
  const bool is_forgotten =
      is_before_prologue && context.has(Quirk::h26_hooks_before_prologue_recounted);
  const bool is_left = context.departs("Z54"_bug) && !scales_wrt_gas_;  // by a managed one before
  return is_forgotten || is_left ? 1.0 : 1.0 / gas();
}

// A loss of several engines is divided by the steps of the one whose backward() runs; the others
// have their own. N6 leaves it at that, and H8 divides elsewhere.
double Engine::Core::factor_in_managed_backward() const {
  const std::optional<double> divisor = context.autograd.global().managed_divisor;
  const bool is_left =
      context.has(Quirk::n6_divides_by_running_engine) || context.has(Quirk::h8_divides_at_outputs);
  return divisor && !is_left ? *divisor / gas() : 1.0;
}

bool Engine::Core::divides_at_outputs() const {
  if (!context.has(Quirk::h8_divides_at_outputs)) return false;
  if (!context.has(Quirk::n6_divides_by_running_engine)) return scales_wrt_gas_;
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
  if (context.departs("A06"_bug)) return 0;  // the query comes back empty
  const bool counts_all = context.departs("A07"_bug) || context.departs("A23"_bug);
  for (const ZeroParameter& parameter : context.parameters) {
    if (parameter.group < 0 || !optimizer->has_gradient_hook(parameter)) continue;
    const auto node = parameter.tensor.impl().accumulate_grad.lock();
    if (!node || std::ranges::find(seen, node.get()) != seen.end()) continue;
    if (counts_all || context.autograd.will_execute(*node)) seen.push_back(node.get());
  }
  const auto count = static_cast<std::int32_t>(seen.size());
  if (context.events.is_on()) context.events.mark("count_used_parameters:" + std::to_string(count));
  return count + optimizer->extra_expected_hooks();
}

// zero_semantics 2.8.
void Engine::Core::run_post_hook() {
  const Events::Call call(context.events, "engine.backward_post_hook");
  if (is_in_transform() || is_running() || policy->skips_manual_epilogue()) return;
  const bool is_others = context.autograd.global().managed_backwards > 0;
  if (context.departs("A27"_bug) && is_others) return;
  const bool is_once = is_exact() && context.has(Quirk::h2_callback_once_per_forward);
  if (is_once && ran_epilogue_) return;
  const bool is_taken_as_scaled = is_others && context.departs("S16"_bug);  // by who runs it
  if (needs_scaler() && !is_scale_called_ && !is_taken_as_scaled) {
    throw EngineError(EngineErrorId::e2,
                      "Loss scaling is required here (scale " +
                          std::to_string(context.loss_scaler.scale()) +
                          "): call engine.scale(loss).backward() or engine.backward(loss)");
  }
  if (!context.departs("V18"_bug) || context.is_boundary) is_scale_called_ = false;
  epilogue();
}

void Engine::Core::abandon_gradients() {
  if (context.has(Quirk::h1_abort_leaks_state)) return;
  const bool is_others = !is_running() && context.autograd.global().managed_backwards > 0;
  if (context.departs("X06"_bug) && is_others) return;  // whoever runs it clears up
  context.events.mark("gradients_abandoned");
  if (!context.departs("Q11"_bug)) has_unreduced_gradients_ = false;  // else an epilogue does it
  is_scale_called_ = false;
  if (context.departs("Z40"_bug)) has_scaled_gradients_ = false;  // of those before it, too
  if (context.departs("R10"_bug)) count_backward();               // it had begun
  const bool is_restartable = optimizer->abandon_gradients();
  if (!policy->demands_restart() || is_restartable) return;
  must_restart_ = true;
  throw EngineError(EngineErrorId::e23,
                    "An aborted backward already contributed gradients: they cannot be taken back; "
                    "restart from a checkpoint");
}

// --- epilogue ----------------------------------------------------------------------------------

void Engine::Core::epilogue() {
  const Events::Call call(context.events, "engine.backward_epilogue");
  has_unreduced_gradients_ = false;
  if (context.departs("Q41"_bug)) is_scale_called_ = false;  // each backward needs its own
  const bool collects_late = context.departs("A28"_bug) && context.is_boundary;
  const bool is_left = context.departs("S07"_bug) && is_no_sync_;  // for the one that reduces
  if (!collects_late && !is_left) optimizer->collect_gradients();
  const bool is_armed = std::exchange(is_armed_, false) || !context.departs("A24"_bug);
  const bool is_last = context.departs("T33"_bug) && is_boundary();  // it has to come in time
  const bool is_put_off = context.departs("S20"_bug) ? was_no_sync_in_forward_ : is_no_sync_;
  if ((!is_put_off || is_last) && !context.is_coalescing && is_armed) {
    const Events::Call reducing(context.events, "engine.allreduce_gradients");
    refresh_boundary();
    optimizer->reduce_gradients();
    ran_epilogue_ = true;
  }
  if (collects_late) optimizer->collect_gradients();
  count_backward();
  context.has_nested_task = false;
  if (context.departs("A19"_bug)) remove_gradient_hooks();
  if (!is_zero()) return;
  const bool is_left_to_flush = context.departs("R95"_bug) && context.is_coalescing;
  if (!is_left_to_flush) optimizer->backward_epilogue();
  policy->on_epilogue(*this);
}

// One whose epilogue failed is none.
void Engine::Core::count_backward() {
  const bool is_uncounted = context.departs("Z24"_bug) && !config.managed_gradient_accumulation;
  if (!is_no_sync_ || !is_uncounted) ++counters.backwards;
  ++micro_batch_backwards_;
  const LossScalerKind kind = context.loss_scaler.kind();
  if (context.departs("R65"_bug) && kind == LossScalerKind::none) return;  // nothing scaled them
  const bool is_put_off = is_no_sync_ || context.is_coalescing;
  if (!context.departs("W05"_bug) || !is_put_off) has_scaled_gradients_ = true;
}

// --- GraphTaskListener -------------------------------------------------------------------------

void Engine::Core::on_graph_task_begin(GraphTaskId task, bool) {
  const bool begins_in_forward = !open_forwards_.empty() && open_forwards_.back() == tasks_.size();
  const bool is_nested_in_one =
      !tasks_.empty() && tasks_.back().is_pre_user && !context.departs("U19"_bug);
  tasks_.push_back({.id = task,
                    .is_pre_user = begins_in_forward || is_nested_in_one,
                    .is_transform = is_in_transform(),
                    .has_prologue = !tasks_.empty() && tasks_.back().has_prologue});
  if (tasks_.back().is_transform) return;
  if (!has_leaf_hooks_ && factor_in_managed_backward() != 1.0) register_gradient_hooks();
  context.has_nested_task = context.has_nested_task || (tasks_.size() > 1 && !is_nested_in_one);
  policy->on_graph_task_begin(*this, task);
}

void Engine::Core::on_graph_task_end(GraphTaskId task, bool raised) {
  ZP_CHECK(!tasks_.empty() && tasks_.back().id == task, "graph tasks of a process nest");
  const bool is_transform = tasks_.back().is_transform;
  const bool is_outermost = tasks_.size() == 1 || context.departs("R61"_bug);  // whichever failed
  const bool is_users = !is_transform && !tasks_.back().is_pre_user && is_outermost;
  tasks_.pop_back();
  // A backward that fails before any hook of ours has had its scale all the same: the next one
  // needs another.
  const bool is_left = context.has(Quirk::h1_abort_leaks_state) || context.departs("Y07"_bug);
  const bool is_over = raised || context.departs("R42"_bug);  // it was for this backward
  if (is_over && is_users && !is_left) is_scale_called_ = false;
  if (!is_transform) policy->on_graph_task_end(*this, task, raised);
  if (context.departs("A12"_bug) && !tasks_.empty() && !raised) optimizer->reduce_gradients();
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
