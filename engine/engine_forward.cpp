// engine.forward, and the hooks on what it returns (docs/spec/zero.md 2.3 to 2.5).
#include <exception>
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
// differentiated behind a later one's release, into a parameter that is partitioned; and it would
// keep whole what stage 3 releases. So every use has a cast of its own there, unlike upstream.
AutocastOptions autocast_of(const ZeroContext& context, const AutocastSetting& outer) {
  const TorchAutocastConfig& own = context.config.torch_autocast;
  if (!own.enabled) return {.is_enabled = false, .dtype = outer.dtype};
  AutocastOptions options{.is_enabled = true, .dtype = own.dtype};
  if (context.config.stage == 3 && !context.upstream.all) options.is_cache_enabled = false;
  return options;
}

}  // namespace

TensorList Engine::Core::forward(TensorList inputs) {
  const Events::Call call(context.events, "engine.forward");
  begin_forward();
  const TensorList outputs = run_module(inputs);
  if (is_zero()) policy->on_forward_end(*this);
  const auto record = std::make_shared<ForwardRecord>();
  const bool has_graph = hook_outputs(outputs, record);
  record->graph = optimizer->on_forward_end(has_graph);
  return outputs;
}

void Engine::Core::begin_forward() {
  if (!std::exchange(is_configuration_told_, true)) mark_configuration(context);
  context.events.set_steps(counters.micro_steps, counters.global_steps);
  if (!context.upstream.stale_boundary_before_prologue) refresh_boundary();
  if (!is_zero()) return;
  const Events::Call call(context.events, config.stage == 3 ? "z3.clear_backward_seen_flag"
                                                            : "z12.clear_backward_seen_flag");
  optimizer->on_forward_begin(std::exchange(ran_epilogue_, false));
  policy->on_forward_begin(*this);
}

TensorList Engine::Core::run_module(const TensorList& inputs) {
  Autograd& autograd = context.autograd;
  const Device device = context.runtime.device();
  const AutocastSetting outer = autograd.local().autocast.on(device.type());
  std::optional<Autocast> region;
  if (config.torch_autocast.enabled || outer.is_enabled)
    region.emplace(autograd, device.type(), autocast_of(context, outer));
  struct Inside {
    Core& core;
    int exceptions = std::uncaught_exceptions();
    explicit Inside(Core& engine) : core(engine) {
      core.open_forwards_.push_back(core.tasks_.size());
      core.context.is_inside_forward = true;
    }
    ~Inside() {
      core.open_forwards_.pop_back();
      core.context.is_inside_forward = !core.open_forwards_.empty();
    }
  } inside(*this);
  try {
    return context.module(autograd, inputs);
  } catch (...) {
    if (is_zero()) policy->on_forward_end(*this);
    optimizer->on_forward_end(false);
    throw;
  }
}

// Whether a backward can reach the engine through them.
bool Engine::Core::hook_outputs(const TensorList& outputs,
                                const std::shared_ptr<ForwardRecord>& record) {
  if (is_in_transform()) return false;
  const bool is_ignored =
      context.upstream.ignores_container_outputs &&
      context.module.output_container() == nn::Module::OutputContainer::dataclass;
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
  const GraphTaskId task = context.autograd.current_graph_task();
  const bool is_once = context.upstream.callback_once_per_forward ||
                       policy->prologue_rule() == PrologueRule::once_per_forward;
  const bool ran_already = is_once ? record->ran_prologue : record->prologue_task == task;
  if (!ran_already) {
    record->ran_prologue = true;
    record->prologue_task = task;
    prologue(record->graph);
  }
  const Events::Call call(context.events, "engine.backward_prologue_per_tensor");
  const bool divides = divides_at_outputs() && gas() != 1.0;
  if (is_in_transform() || !grad.is_defined() || !divides) return {};
  return div(context.autograd, grad, gas());
}

// docs/spec/zero.md 2.5.
void Engine::Core::prologue(std::int64_t graph) {
  const Events::Call call(context.events, "engine.backward_prologue");
  if (is_in_transform()) return;
  refuse_manual_backward();
  optimizer->backward_prologue(graph);
  if (!is_zero()) return;
  for (OpenTask& task : tasks_) task.has_prologue = true;
  policy->on_prologue(*this);
  refresh_boundary();
}

void Engine::Core::refuse_manual_backward() const {
  if (supports_manual_backward() || is_running()) return;
  throw EngineError(EngineErrorId::manual_backward_unsupported,
                    "Direct calls to tensor.backward() are not supported here (ZeRO stage " +
                        std::to_string(config.stage) +
                        (options.has_count_apis ? "" : ", without the autograd's count API") +
                        "): call engine.backward(loss)");
}

}  // namespace zeroproof
