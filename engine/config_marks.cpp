#include "engine/config_marks.h"

#include <fmt/format.h>

namespace zeroproof {
namespace {

void mark(const Events& events, std::string_view word, double value) {
  events.mark(fmt::format("{}:{}", word, value));
}

}  // namespace

void mark_configuration(const ZeroContext& context) {
  const Events& events = context.events;
  if (!events.is_on()) return;
  const ZeroConfig& config = context.config;
  events.mark(fmt::format("reduce_bucket_size:{}", config.reduce_bucket_size));
  events.mark(fmt::format("gradient_accumulation_steps:{}", config.gradient_accumulation_steps));
  if (!config.managed_gradient_accumulation) events.mark("managed_gradient_accumulation:0");
  mark(events, "gradient_clipping", config.gradient_clipping);
  if (config.stage == 3) {
    events.mark(fmt::format("stage3_prefetch_bucket_size:{}", config.stage3_prefetch_bucket_size));
    events.mark(fmt::format("stage3_max_live_parameters:{}", config.stage3_max_live_parameters));
  }
  if (context.loss_scaler.kind() == LossScalerKind::dynamic) {
    events.mark(fmt::format("loss_scale_window:{}", config.fp16.loss_scale_window));
    events.mark(fmt::format("hysteresis:{}", config.fp16.hysteresis));
    mark(events, "min_loss_scale", config.fp16.min_loss_scale);
    events.mark(fmt::format("consecutive_hysteresis:{:d}", config.fp16.consecutive_hysteresis));
  }
  mark(events, "loss_scale", context.loss_scaler.scale());
  for (const ZeroParameter& parameter : context.parameters) {
    if (parameter.elements > 0) continue;
    HookEvent event;
    event.kind = EventKind::mark;
    event.name = events.name("zero_sized_parameter");
    event.param = parameter.name_id;
    events.send(std::move(event));
  }
}

void mark_step(const ZeroContext& context, const StepFacts& facts) {
  const Events& events = context.events;
  if (!events.is_on()) return;
  events.mark(fmt::format("overflow:{:d}", facts.has_overflow));
  if (facts.grad_norm) mark(events, "grad_norm", *facts.grad_norm);
  events.mark(facts.has_overflow ? "step_skipped" : "step_applied");
  mark(events, "loss_scale", facts.loss_scale);
}

}  // namespace zeroproof
