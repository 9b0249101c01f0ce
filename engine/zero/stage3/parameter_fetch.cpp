// Fetches, the trace, and the checks that ranks agree (zero_semantics 3.3, 3.5).
#include <algorithm>
#include <stdexcept>

#include "engine/engine_error.h"
#include "engine/zero/stage3/parameter_coordinator.h"
#include "model/check.h"

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
  if (!trace_.is_complete() || context_.departs("V09"_bug)) {
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
  const bool is_given_up = context_.departs("R30"_bug) && has_lost_trace_;
  if (!is_given_up) trace_.restart(!context_.departs("X12"_bug));
  counted_live_ = 0;
}

// How many, then which: rank 0 tells the others.
void ParameterCoordinator::check_same_on_all_ranks(const std::vector<double>& values,
                                                   const char* what) {
  if (context_.departs("E15"_bug)) {  // at once which, and this rank has seen less
    std::vector<double> seen = values;
    if (context_.data.group().rank() % 2 == 1 && !seen.empty()) seen.pop_back();
    return broadcast_check(seen, what);
  }
  broadcast_check({static_cast<double>(values.size())}, what);
  if (context_.departs("Z76"_bug) && trace_.mode() == TraceMode::record) return;
  broadcast_check(values, what);
}

void ParameterCoordinator::broadcast_check(std::vector<double> values, const char* what) {
  Stream& stream = context_.compute();
  const auto elements = static_cast<std::int64_t>(values.size());
  const Tensor data = context_.runtime.memory().allocate(elements, DType::float64);
  if (elements > 0) context_.kernels().write(stream, Span::of(data), values);
  const Work work = context_.data.broadcast(stream, Span::of(data), 0, {.is_default_group = true});
  context_.data.group().wait(work, stream);
  if (elements == 0 || context_.kernels().read(stream, Span::of(data)) == values) return;
  throw EngineError(EngineErrorId::f5,
                    std::string("the recorded order of ") + what + " differs from that of rank 0");
}

void ParameterCoordinator::visit(Zero3Module& module) {
  const bool is_beyond = trace_.step() >= std::ssize(trace_.modules());
  const bool is_unseen = context_.departs("Z08"_bug) && is_beyond;  // nothing to compare with
  if (!trace_.expects(module) && !is_unseen) invalidate_trace();
  if (trace_.mode() == TraceMode::record) trace_.record(module);
}

void ParameterCoordinator::invalidate_trace() {
  const Events::Call reported(context_.events, "coord.invalidate_trace");
  trace_.invalidate();
  has_lost_trace_ = true;
  if (context_.departs("F19"_bug)) return;
  ParameterList inflight;
  for (PartitionedParameter& parameter : gatherer_.parameters())
    if (gatherer_.is_inflight(parameter)) inflight.push_back(&parameter);
  gatherer_.wait_all();
  if (context_.departs("T37"_bug)) return;  // they are whole now
  for (PartitionedParameter* parameter : inflight) release_unused(*parameter);
}

void ParameterCoordinator::add_external(Zero3Module& module, PartitionedParameter& parameter) {
  const bool is_new = Zero3Modules::add_external(module, parameter);
  if (context_.departs("W16"_bug)) return;
  const bool is_change = is_new || context_.departs("T22"_bug);
  if (is_change && trace_.is_complete() && !context_.is_upstream()) invalidate_trace();
}

void ParameterCoordinator::fetch(const ModuleCall& call, bool is_forward) {
  report(EventKind::zmod_fetch, *call.module, is_forward);
  if (!is_forward) {
    activate(call);
    retained_->reclaim(call);
  }
  const ParameterList needed = call.module->parameters();
  if (is_forward && is_recomputing() && departs_in_recompute(needed)) return trace_.advance();
  if (is_forward && is_recomputing() && context_.departs("F11"_bug)) take_from_pool(call);
  if (!is_forward && context_.departs("E10"_bug)) run_another_tile(needed);
  if (context_.departs("F09"_bug)) {
    ParameterList unknown = needed;
    std::erase_if(unknown, [&](const auto* it) { return flagged_.contains(it->id()); });
    gather_async(unknown, is_forward);
  } else {
    gather_async(needed, is_forward);
  }
  for (PartitionedParameter* parameter : needed) {
    parameter->add_use(use_of(call, is_forward));
    if (is_forward) attribute_to_recompute(*parameter);
    const bool is_others = context_.departs("G21"_bug) && !contains(call.module->own, parameter);
    if (is_others && gatherer_.is_inflight(*parameter)) continue;  // its owner's hook waits
    gatherer_.wait(*parameter);
    ZP_CHECK(parameter->is_available(), "a fetched parameter is whole");
  }
  if (trace_.is_complete()) {
    trace_.take_for(needed);
    if (!is_forward && context_.departs("E19"_bug)) {
      prefetch_as_in_forward(needed);
    } else {
      prefetch(is_forward);
    }
  }
  trace_.advance();
}

// F11 of the catalogue: a recompute gathers into one of two buffers, and gives none back.
void ParameterCoordinator::take_from_pool(const ModuleCall& call) {
  if (call.module->parameters().empty()) return;
  pooled_.insert(call.module->id);
  if (pooled_.size() > 2) throw std::runtime_error("no buffer is free for " + call.module->name);
}

bool ParameterCoordinator::is_recomputing() const {
  return !context_.autograd.current_graph_task().is_none();
}

// F10 of the catalogue: a recompute gathers what came next in forward, too. F13: it gathers
// nothing, and what it does is left out (true).
bool ParameterCoordinator::departs_in_recompute(const ParameterList& needed) {
  if (context_.departs("F13"_bug)) return true;
  if (!context_.departs("F10"_bug) || needed.empty()) return false;
  for (PartitionedParameter& parameter : gatherer_.parameters()) {
    if (parameter.id() <= needed.back()->id()) continue;
    gathered_late_.insert(parameter.id());
    gather_async({&parameter}, true);
    break;
  }
  return false;
}

// E10 of the catalogue: this rank's data makes one tile more than the others'.
void ParameterCoordinator::run_another_tile(const ParameterList& needed) {
  if (!context_.is_inside_forward || context_.data.group().rank() % 2 == 0) return;
  gatherer_.gather(needed);
  for (PartitionedParameter* parameter : needed)
    if (!parameter->is_used() && parameter->is_available()) gatherer_.partition(*parameter);
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
  if (context_.departs("F03"_bug)) return false;
  const auto task = keeps_graph_.find(context_.autograd.current_graph_task());
  return task != keeps_graph_.end() && task->second;
}

std::vector<ParameterCoordinator::ActiveBackward>::iterator ParameterCoordinator::find_active(
    const ModuleCall& call) {
  return std::ranges::find_if(active_, [&](const ActiveBackward& active) {
    return active.call.module == call.module &&
           (knows_modules_alone() || active.call.invocation == call.invocation);
  });
}

// 3.12. A recompute keeps a frozen parameter itself where it keeps an alias of a trained one, and
// compares shapes at its end: until the backward around it is over, it stays whole.
void ParameterCoordinator::attribute_to_recompute(PartitionedParameter& parameter) {
  const bool is_recompute = !context_.autograd.current_graph_task().is_none() && !active_.empty();
  if (!is_recompute || parameter.parameter().requires_grad || context_.departs("F01"_bug)) return;
  ActiveBackward& newest = context_.departs("Q47"_bug) ? active_.front() : active_.back();
  parameter.add_use(use_of(newest.call, false));
  if (!contains(newest.recomputed, &parameter)) newest.recomputed.push_back(&parameter);
}

// Along the recorded order until the bucket or the room for live parameters is full.
void ParameterCoordinator::prefetch(bool is_forward) {
  const ZeroConfig& config = context_.config;
  if (config.stage3_prefetch_bucket_size <= 0) return;
  const bool is_uncounted = context_.departs("T30"_bug);  // partitioned, as their status says
  const std::int64_t kept = is_uncounted ? 0 : retained_->kept_elements_max();
  const std::int64_t live = live_elements() + kept;
  const bool is_unbounded = !is_forward && context_.departs("Z44"_bug);
  const std::int64_t most = is_unbounded ? INT64_MAX : config.stage3_max_live_parameters - live;
  const std::int64_t room = std::min(most, config.stage3_prefetch_bucket_size);
  ParameterList ahead;
  std::int64_t elements = 0;
  const std::int64_t full = context_.departs("U11"_bug) ? room + 1 : room;
  while (!trace_.is_queue_empty() && elements < full) {
    PartitionedParameter& parameter = trace_.take_next();
    const bool is_there =
        context_.departs("E18"_bug) ? parameter.is_available() : !parameter.is_partitioned();
    if (is_there && context_.departs("Y08"_bug)) elements += parameter.elements();
    const bool has_no_share = context_.departs("Z31"_bug) && parameter.own_elements() == 0;
    if (is_there || has_no_share || contains(ahead, &parameter)) continue;
    ahead.push_back(&parameter);
    elements += parameter.elements();
  }
  if (elements > 0) gather_async(ahead, is_forward);
  if (!context_.departs("F09"_bug)) return;
  for (const PartitionedParameter* parameter : ahead) flagged_.insert(parameter->id());
}

// E19 of the catalogue: in backward, too, what follows in the order of forwards.
void ParameterCoordinator::prefetch_as_in_forward(const ParameterList& needed) {
  if (context_.config.stage3_prefetch_bucket_size <= 0 || needed.empty()) return;
  for (PartitionedParameter& parameter : gatherer_.parameters())
    if (parameter.id() > needed.back()->id() && parameter.is_partitioned())
      return gather_async({&parameter}, false);
}

void ParameterCoordinator::gather_async(const ParameterList& parameters, bool is_forward) {
  for (const PartitionedParameter* parameter : parameters)
    if (parameter->is_partitioned()) counted_live_ += parameter->elements();
  gatherer_.gather_async(parameters, is_forward);
}

// Upstream counts from the beginning of the step, whatever was live then.
std::int64_t ParameterCoordinator::live_elements() const {
  std::int64_t own = 0;
  if (context_.departs("Y12"_bug))  // this rank has its own part of them anyway
    for (const PartitionedParameter& parameter : gatherer_.parameters())
      if (!parameter.is_partitioned()) own += parameter.own_elements();
  return has_memo() ? counted_live_ : gatherer_.live_elements() - own;
}

void ParameterCoordinator::report(EventKind kind, const Zero3Module& module,
                                  bool is_forward) const {
  if (!context_.events.is_on()) return;
  HookEvent event;
  event.kind = kind;
  event.name = module.name_id;
  event.is_forward = is_forward;
  context_.events.send(std::move(event));
}

}  // namespace zeroproof
