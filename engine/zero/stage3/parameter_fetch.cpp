// Fetches, the trace, and the checks that ranks agree (docs/spec/zero.md 3.3, 3.5).
#include <algorithm>
#include <stdexcept>

#include "engine/zero/stage3/parameter_coordinator.h"
#include "model/check.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/internal/engine/hooks/backward_tracker.h"

namespace zeroproof {

ParameterCoordinator::ParameterCoordinator(ZeroContext& context, ParameterGatherer& gatherer)
    : context_(context),
      gatherer_(gatherer),
      trace_(context.parameters.size()),
      retained_(
          std::make_shared<RetainedGraphs>(gatherer, context.config.stage3_max_live_parameters)) {}

ParameterUse ParameterCoordinator::use_of(const ModuleCall& call, bool is_forward) const {
  if (knows_modules_alone()) return {.module = call.module->id};
  return {.module = call.module->id, .is_backward = !is_forward, .invocation = call.invocation};
}

void ParameterCoordinator::reset_step() {
  const Events::Call reported(context_.events, "coord.reset_step");
  if (!trace_.is_complete()) {
    std::vector<double> modules;
    for (const Zero3Module* module : trace_.modules()) modules.push_back(module->id);
    check_same_on_all_ranks(modules, "modules");
  }
  if (trace_.mode() == TraceMode::record) {
    trace_.construct_order();
    std::vector<double> parameters;
    std::vector<double> steps;
    for (const FetchTrace::Entry& entry : trace_.order()) {
      parameters.push_back(static_cast<double>(entry.parameter->id().value));
      steps.push_back(static_cast<double>(entry.step));
    }
    check_same_on_all_ranks(parameters, "parameters");
    check_same_on_all_ranks(steps, "last uses");
  }
  trace_.restart();
  counted_live_ = 0;
}

// How many, then which: rank 0 broadcasts both.
void ParameterCoordinator::check_same_on_all_ranks(const std::vector<double>& values,
                                                   const char* what) {
  broadcast_check({static_cast<double>(values.size())}, what);
  broadcast_check(values, what);
}

void ParameterCoordinator::broadcast_check(const std::vector<double>& values, const char* what) {
  Stream& stream = context_.compute();
  const auto elements = static_cast<std::int64_t>(values.size());
  const Tensor data = context_.runtime.memory().allocate(elements, DType::float64);
  if (elements > 0) context_.kernels().write(stream, Span::of(data), values);
  const Work work = context_.data.broadcast(stream, Span::of(data), 0, {.is_default_group = true});
  context_.data.group().wait(work, stream);
  if (elements == 0 || context_.kernels().read(stream, Span::of(data)) == values) return;
  throw EngineError(EngineErrorId::fetch_order_differs_between_ranks,
                    std::string("the recorded order of ") + what + " differs from that of rank 0");
}

void ParameterCoordinator::visit(Zero3Module& module) {
  if (!trace_.expects(module)) invalidate_trace();
  if (trace_.mode() == TraceMode::record) trace_.record(module);
}

void ParameterCoordinator::invalidate_trace() {
  const Events::Call reported(context_.events, "coord.invalidate_trace");
  trace_.invalidate();
  ParameterList inflight;
  for (PartitionedParameter& parameter : gatherer_.parameters())
    if (gatherer_.is_inflight(parameter)) inflight.push_back(&parameter);
  gatherer_.wait_all();
  for (PartitionedParameter* parameter : inflight) release_unused(*parameter);
}

void ParameterCoordinator::add_external(Zero3Module& module, PartitionedParameter& parameter) {
  const bool is_new = Zero3Modules::add_external(module, parameter);
  if (is_new) report_external(module, parameter);
  if (is_new && trace_.is_complete() && !context_.upstream.all) invalidate_trace();
}

// A moment: docs/reference/trace_format.md section 14.
void ParameterCoordinator::report_external(const Zero3Module& module,
                                           const PartitionedParameter& parameter) const {
  if (!context_.events.is_on()) return;
  HookEvent event;
  event.kind = EventKind::engine_call;
  event.name = context_.events.name("coord.add_external:" + module.name);
  event.param = parameter.parameter().name_id;
  context_.events.write_only(std::move(event));
}

void ParameterCoordinator::fetch(const ModuleCall& call, bool is_forward) {
  report(EventKind::zmod_fetch, call, is_forward);
  if (!is_forward) {
    activate(call);
    retained_->restore_cached(call);
  }
  const ParameterList needed = call.module->parameters();
  gather_async(needed, is_forward);
  for (PartitionedParameter* parameter : needed) {
    parameter->add_use(use_of(call, is_forward));
    if (is_forward) attribute_to_recompute(*parameter);
    gatherer_.wait(*parameter);
    ZP_CHECK(parameter->is_available(), "a fetched parameter is whole");
  }
  if (trace_.is_complete()) {
    trace_.take_for(needed);
    prefetch(is_forward);
  }
  trace_.advance();
}

bool ParameterCoordinator::is_recomputing() const {
  return !context_.autograd.current_graph_task().is_none();
}

void ParameterCoordinator::activate(const ModuleCall& call) {
  const bool keeps = keeps_graph();
  const auto at = find_active(call);
  if (at == active_.end()) {
    active_.push_back({.call = call, .keeps_graph = keeps});
  } else {
    at->keeps_graph = keeps;
  }
  if (!keeps) passed_.insert(call.graph);
}

bool ParameterCoordinator::keeps_graph() const {
  const BackwardTracker::OpenTask* task =
      context_.tracker.find(context_.autograd.current_graph_task());
  return task != nullptr && task->options.keeps_graph && !task->options.is_transform;
}

std::vector<ParameterCoordinator::ActiveBackward>::iterator ParameterCoordinator::find_active(
    const ModuleCall& call) {
  return std::ranges::find_if(active_, [&](const ActiveBackward& active) {
    return active.call.module == call.module &&
           (knows_modules_alone() || active.call.invocation == call.invocation);
  });
}

// docs/spec/zero.md 3.12. A recompute keeps a frozen parameter itself where it keeps an alias of a
// trained one, and compares shapes at its end: until the backward around it is over, it stays
// whole.
void ParameterCoordinator::attribute_to_recompute(PartitionedParameter& parameter) {
  const bool is_recompute = !context_.autograd.current_graph_task().is_none() && !active_.empty();
  if (!is_recompute || parameter.parameter().requires_grad) return;
  ActiveBackward& newest = active_.back();
  parameter.add_use(use_of(newest.call, false));
  if (!contains(newest.recomputed, &parameter)) newest.recomputed.push_back(&parameter);
}

// Along the recorded order until the bucket or the room for live parameters is full.
void ParameterCoordinator::prefetch(bool is_forward) {
  const ZeroConfig& config = context_.config;
  if (config.stage3_prefetch_bucket_size <= 0) return;
  const std::int64_t kept = retained_->kept_elements_max();
  const std::int64_t live = live_elements() + kept;
  const std::int64_t most = config.stage3_max_live_parameters - live;
  const std::int64_t room = std::min(most, config.stage3_prefetch_bucket_size);
  ParameterList ahead;
  std::int64_t elements = 0;
  while (!trace_.is_queue_empty() && elements < room) {
    PartitionedParameter& parameter = trace_.take_next();
    if (!parameter.is_partitioned() || contains(ahead, &parameter)) continue;
    ahead.push_back(&parameter);
    elements += parameter.elements();
  }
  if (elements > 0) gather_async(ahead, is_forward);
}

void ParameterCoordinator::gather_async(const ParameterList& parameters, bool is_forward) {
  for (const PartitionedParameter* parameter : parameters)
    if (parameter->is_partitioned()) counted_live_ += parameter->elements();
  gatherer_.gather_async(parameters, is_forward);
}

// Upstream counts from the beginning of the step, whatever was live then.
std::int64_t ParameterCoordinator::live_elements() const {
  return has_memo() ? counted_live_ : gatherer_.live_elements();
}

void ParameterCoordinator::report(EventKind kind, const ModuleCall& call, bool is_forward) const {
  if (!context_.events.is_on()) return;
  HookEvent event;
  event.kind = kind;
  event.name = call.module->name_id;
  event.is_forward = is_forward;
  if (!knows_modules_alone()) {
    event.index = call.invocation;
    event.call = call.graph;
  }
  context_.events.send(std::move(event));
}

}  // namespace zeroproof
