// engine.forward, and the hooks on what it returns (docs/spec/zero.md 2.3 to 2.5).
#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/config_marks.h"
#include "engine/engine_core.h"
#include "model/autocast/autocast.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// The engine's own autocast setting wins over one around it; where it has none, a region around
// it is switched off inside (docs/spec/zero.md 6.1). A cast that several modules share is
// differentiated after a later one's release, into a parameter that is partitioned; and it would
// keep whole what stage 3 releases. So every use has a cast of its own there, unlike upstream.
AutocastOptions autocast_of(const ZeroContext& context, const AutocastSetting& outer) {
  const TorchAutocastConfig& own = context.config.torch_autocast;
  if (!own.enabled) return {.is_enabled = false, .dtype = outer.dtype};
  AutocastOptions options{.is_enabled = true, .dtype = own.dtype};
  if (context.config.stage == 3 && !context.upstream.all) options.is_cache_enabled = false;
  return options;
}

}  // namespace

TensorList Engine::Core::forward(const TensorList& inputs) {
  const Events::Call call(context_.events, "engine.forward");
  begin_forward();
  TensorList outputs = run_module(inputs);
  if (is_zero()) policy_->on_forward_end(*this);
  const auto record = std::make_shared<ForwardRecord>();
  const bool has_graph = hook_outputs(outputs, record);
  record->graph = optimizer_->on_forward_end(has_graph);
  return outputs;
}

void Engine::Core::tell_configuration() {
  if (!std::exchange(is_configuration_told_, true)) mark_configuration(context_);
}

void Engine::Core::begin_forward() {
  tell_configuration();
  context_.events.set_steps(counters_.micro_steps, counters_.global_steps);
  if (!context_.upstream.stale_boundary_before_prologue) refresh_boundary();
  if (!is_zero()) return;
  const Events::Call call(context_.events, config_.stage == 3 ? "z3.clear_backward_seen_flag"
                                                              : "z12.clear_backward_seen_flag");
  optimizer_->on_forward_begin(std::exchange(ran_epilogue_, false));
  policy_->on_forward_begin(*this);
}

TensorList Engine::Core::run_module(const TensorList& inputs) {
  Autograd& autograd = context_.autograd;
  const Device device = context_.runtime.device();
  const AutocastSetting outer = autograd.local().autocast.on(device.type());
  std::optional<Autocast> region;
  if (config_.torch_autocast.enabled || outer.is_enabled)
    region.emplace(autograd, device.type(), autocast_of(context_, outer));
  tracker_.begin_forward();
  try {
    TensorList outputs = context_.module(autograd, inputs);
    tracker_.end_forward();
    return outputs;
  } catch (...) {
    tracker_.end_forward();
    if (is_zero()) policy_->on_forward_end(*this);
    optimizer_->on_forward_end(false);
    throw;
  }
}

// Whether a backward can reach the engine through them.
bool Engine::Core::hook_outputs(const TensorList& outputs,
                                const std::shared_ptr<ForwardRecord>& record) {
  if (is_in_transform()) return false;
  const bool is_ignored =
      context_.upstream.ignores_container_outputs &&
      context_.module.output_container() == nn::Module::OutputContainer::dataclass;
  if (is_ignored) return false;
  bool has_graph = false;
  for (const Tensor& output : outputs) {
    const bool has_none = !output.is_defined() || !output.grad_fn();
    if (has_none) continue;
    output.register_hook(
        [this, record](const Tensor& grad) { return on_output_gradient(record, grad); });
    has_graph = true;
  }
  return has_graph;
}

Tensor Engine::Core::on_output_gradient(const std::shared_ptr<ForwardRecord>& record,
                                        const Tensor& grad) {
  const GraphTaskId task = context_.autograd.current_graph_task();
  const bool is_once = context_.upstream.callback_once_per_forward ||
                       policy_->prologue_rule() == PrologueRule::once_per_forward;
  const bool ran_already = is_once ? record->ran_prologue : record->prologue_task == task;
  if (!ran_already) {
    record->ran_prologue = true;
    record->prologue_task = task;
    prologue(record->graph);
  }
  const Events::Call call(context_.events, "engine.backward_prologue_per_tensor");
  const bool divides = loss_factor_.divides_at_outputs() && gas() != 1.0;
  if (is_in_transform() || !grad.is_defined() || !divides) return {};
  return div(context_.autograd, grad, gas());
}

// docs/spec/zero.md 2.5.
void Engine::Core::prologue(std::int64_t graph) {
  const Events::Call call(context_.events, "engine.backward_prologue");
  if (is_in_transform()) return;
  refuse_manual_backward();
  optimizer_->backward_prologue(graph);
  if (!is_zero()) return;
  tracker_.run_prologue();
  policy_->on_prologue(*this);
  refresh_boundary();
}

void Engine::Core::refuse_manual_backward() const {
  if (supports_manual_backward() || tracker_.is_backward_running()) return;
  throw EngineError(EngineErrorId::manual_backward_unsupported,
                    "Direct calls to tensor.backward() are not supported here (ZeRO stage " +
                        std::to_string(config_.stage) +
                        (options_.has_count_apis ? "" : ", without the autograd's count API") +
                        "): call engine.backward(loss)");
}

}  // namespace zeroproof
