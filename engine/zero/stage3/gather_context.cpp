#include "engine/zero/stage3/gather_context.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include "zeroproof/engine/engine_error.h"

namespace zeroproof {
namespace {

// Also where they are no numbers.
bool are_same(std::span<const double> values, std::span<const double> before) {
  return std::ranges::equal(values, before, [](double value, double old) {
    return value == old || (std::isnan(value) && std::isnan(old));
  });
}

}  // namespace

GatherContext::GatherContext(ZeroContext& context, ParameterGatherer& gatherer,
                             const TensorList& parameters, std::optional<int> modifier_rank)
    : context_(context),
      gatherer_(gatherer),
      modifier_rank_(modifier_rank),
      exceptions_(std::uncaught_exceptions()) {
  for (const Tensor& tensor : parameters) {
    PartitionedParameter* parameter = gatherer.find(tensor);
    if (parameter && !contains(parameters_, parameter)) parameters_.push_back(parameter);
  }
  std::ranges::sort(parameters_, {}, [](const PartitionedParameter* p) { return p->id(); });
  enter();
}

void GatherContext::enter() {
  std::string overlapping;
  for (const PartitionedParameter* parameter : parameters_)
    if (parameter->user_depth() > 0) overlapping += " " + std::to_string(parameter->id().value);
  if (!overlapping.empty())
    throw EngineError(EngineErrorId::gather_contexts_overlap,
                      "nested contexts cannot overlap parameters; gathered already:" + overlapping);
  report_begin();
  try {
    gatherer_.gather(parameters_);
  } catch (...) {
    report_end(true);
    throw;
  }
  for (PartitionedParameter* parameter : parameters_) parameter->set_user_depth(1);
  is_entered_ = true;
  if (!context_.config.enable_sanity_checks || modifier_rank_) return;
  for (PartitionedParameter* parameter : parameters_) parameter->watch_values(true);
}

GatherContext::~GatherContext() {
  if (!is_entered_) return;
  try {
    partition_all(false);
  } catch (const std::exception&) {  // the exception that ends the context is the one to see
  }
  leave();
}

void GatherContext::exit() {
  if (modifier_rank_) {
    take_over_changes();
    partition_all(true);
    return leave();
  }
  const bool is_modified = is_modified_anywhere();
  partition_all(false);
  leave();
  if (is_modified)
    throw EngineError(EngineErrorId::modified_without_modifier_rank,
                      "in-place modification of gathered parameters without modifier_rank: name "
                      "the rank whose changes all ranks are to take over");
}

void GatherContext::take_over_changes() {
  for (const PartitionedParameter* parameter : parameters_) {
    const Tensor& tensor = parameter->parameter().tensor;
    if (parameter->is_available() && tensor.device() == context_.runtime.device()) continue;
    throw EngineError(EngineErrorId::gathered_parameter_left_device,
                      parameter->parameter().name +
                          " is no longer on the accelerator; its changes cannot be broadcast");
  }
  Stream& stream = context_.compute();
  const int root = *modifier_rank_;
  Work last;
  for (const PartitionedParameter* parameter : parameters_)
    last = context_.data.broadcast(stream, Span::of(parameter->parameter().tensor), root,
                                   {.is_async = true});
  if (!parameters_.empty()) context_.data.wait(last, stream);
  // That wait was for all of them.
  for (std::size_t before = 1; before < parameters_.size(); ++before)
    context_.data.forget({last.sequence - static_cast<std::int64_t>(before)});
}

// What a load or a step has given up meanwhile has no value to lose. What it has gathered
// again is compared with the new values.
bool GatherContext::is_modified(const PartitionedParameter& parameter) {
  if (!parameter.is_available()) return false;
  const std::vector<double> values = parameter.parameter().tensor.values();
  std::span<const double> now = values;
  std::span<const double> before = parameter.watched_values();
  return !are_same(now, before);
}

// One number that all ranks add up: they leave the context in the same way.
bool GatherContext::is_modified_anywhere() const {
  if (!context_.config.enable_sanity_checks) return false;
  bool has_changed = false;
  for (const PartitionedParameter* parameter : parameters_)
    has_changed = is_modified(*parameter) || has_changed;
  Stream& stream = context_.compute();
  const Tensor count = context_.runtime.memory().allocate(1, DType::float64);
  context_.kernels().fill(stream, Span::of(count), has_changed ? 1.0 : 0.0);
  const Work work = context_.data.all_reduce(stream, Span::of(count), ReduceOp::max, {});
  context_.data.group().wait(work, stream);
  return context_.kernels().read(stream, Span::of(count)).at(0) > 0.0;
}

// Also those that were whole before, and persistent ones. A module that is still under way keeps
// what it uses, with the changes in its slice.
void GatherContext::partition_all(bool has_been_updated) {
  for (PartitionedParameter* parameter : parameters_) {
    if (!parameter->is_available()) continue;
    if (parameter->owner() && parameter->owner()->keeps(*parameter, has_been_updated)) continue;
    if (!parameter->is_used()) {
      gatherer_.partition(*parameter, has_been_updated);  // only the trained change
    } else if (has_been_updated) {
      parameter->take_slice(Span::of(parameter->parameter().tensor));
    }
  }
}

void GatherContext::leave() {
  for (PartitionedParameter* parameter : parameters_) {
    parameter->set_user_depth(0);
    parameter->watch_values(false);
  }
  is_entered_ = false;
  report_end(std::uncaught_exceptions() > exceptions_);
}

// Around what happens in the context. No fault point: the user's code runs inside.
void GatherContext::report_begin() const {
  if (!context_.events.is_on()) return;
  HookEvent event = event_of(EventKind::engine_call);
  for (const PartitionedParameter* parameter : parameters_)
    event.params.push_back(parameter->parameter().name_id);
  context_.events.write_only(std::move(event));
}

void GatherContext::report_end(bool has_raised) const {
  if (!context_.events.is_on()) return;
  HookEvent event = event_of(EventKind::engine_return);
  if (has_raised) event.exception = context_.events.name("Exception");
  context_.events.write_only(std::move(event));
}

HookEvent GatherContext::event_of(EventKind kind) const {
  HookEvent event;
  event.kind = kind;
  event.name = context_.events.name("z3.gathered_parameters");
  return event;
}

}  // namespace zeroproof
