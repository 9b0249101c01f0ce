#include "engine/zero/stage3/eager_fallback.h"

#include <algorithm>
#include <utility>

namespace zeroproof {

EagerFallback::EagerFallback(ZeroContext& context, ParameterGatherer& gatherer)
    : context_(context), gatherer_(gatherer) {}

EagerFallback::~EagerFallback() {
  for (const ParamId id : tracked_)
    if (of(id).owner() == this) of(id).set_owner(nullptr);
}

PartitionedParameter& EagerFallback::of(ParamId id) const {
  return gatherer_.parameters()[static_cast<std::size_t>(id.value)];
}

// A forward without outstanding reads starts with no parameter gathered.
void EagerFallback::begin_forward() {
  if (depth_++ > 0) return;
  current_.clear();
  report("fallback.forward", next_graph_, {});
  if (context_.fallback_rule == FallbackRule::after_any_backward) return;
  release_unclaimed();
  if (claims_.empty()) release_unowned();
}

std::optional<EagerFallback::Graph> EagerFallback::end_forward(bool has_graph) {
  if (--depth_ > 0) return std::nullopt;
  if (context_.fallback_rule == FallbackRule::after_forward) {
    release_unclaimed();
    return std::nullopt;
  }
  if (!has_graph) return std::nullopt;
  const Graph graph = next_graph_++;
  claims_[graph] = current_;
  report("fallback.claim", graph, current_);
  return graph;
}

// A read outside any forward is a recompute's: it belongs to the backwards that have begun.
void EagerFallback::read(PartitionedParameter& parameter) {
  const ParamId id = parameter.id();
  if (is_guard_evaluation_) {
    if (parameter.is_partitioned()) suppressed_.push_back(id);
    return;
  }
  if (!parameter.is_available()) {
    report("fallback.gather", next_graph_, {id});
    gatherer_.gather({&parameter});
    if (parameter.owner() && parameter.owner() != this) parameter.owner()->forget(parameter);
    parameter.set_owner(this);
    tracked_.insert(id);
    ++gathers_;
  } else if (!tracked_.contains(id)) {
    return;
  }
  if (depth_ > 0) current_.insert(id);
  if (depth_ == 0)
    for (const Graph graph : started_) claims_[graph].insert(id);
}

// A graph that had its backward is no graph any more: a second one claims no parameter.
void EagerFallback::start_backward(Graph graph) {
  if (!claims_.contains(graph)) return;
  started_.insert(graph);
  report("fallback.start", graph, {});
}

void EagerFallback::end_backward() {
  if (context_.fallback_rule == FallbackRule::after_any_backward) return release_gathered();
  if (started_.empty()) return;
  for (const Graph graph : std::exchange(started_, {})) {
    report("fallback.drop", graph, claims_[graph]);
    claims_.erase(graph);
  }
  release_unclaimed();
}

void EagerFallback::release_gathered() {
  report("fallback.abandon", next_graph_, {});
  claims_.clear();
  started_.clear();
  release_unclaimed();
}

bool EagerFallback::keeps(PartitionedParameter& parameter, bool has_been_updated) {
  if (context_.fallback_rule != FallbackRule::per_graph || !has_claim(parameter)) {
    tracked_.erase(parameter.id());
    parameter.set_owner(nullptr);
    return false;
  }
  if (has_been_updated) parameter.take_slice(Span::of(parameter.parameter().tensor));
  return true;
}

void EagerFallback::forget(PartitionedParameter& parameter) {
  tracked_.erase(parameter.id());
  current_.erase(parameter.id());
  for (auto& [graph, claimed] : claims_) claimed.erase(parameter.id());
}

// What the running forward has read counts as claimed.
bool EagerFallback::has_claim(const PartitionedParameter& parameter) const {
  const auto holds = [&](const auto& claim) { return claim.second.contains(parameter.id()); };
  const bool is_running = depth_ > 0;
  return (is_running && current_.contains(parameter.id())) || std::ranges::any_of(claims_, holds);
}

void EagerFallback::release_unclaimed() {
  for (const ParamId id : std::set(tracked_)) {
    PartitionedParameter& parameter = of(id);
    const bool is_claimed =
        context_.fallback_rule == FallbackRule::per_graph && has_claim(parameter);
    const bool is_in_context =
        context_.fallback_rule == FallbackRule::per_graph && parameter.user_depth() > 0;
    if (is_claimed || is_in_context) continue;
    partition(parameter);
    tracked_.erase(id);
    parameter.set_owner(nullptr);
  }
}

// Left whole without an owner: with no read outstanding here it is not needed. What another
// fallback owns, that one releases when no graph of its own claims it (P81, P82).
void EagerFallback::release_unowned() {
  for (PartitionedParameter& parameter : gatherer_.parameters()) {
    const bool is_of_another = parameter.owner() != nullptr && parameter.owner() != this;
    if (parameter.user_depth() == 0 && !is_of_another) partition(parameter);
  }
}

void EagerFallback::partition(PartitionedParameter& parameter) {
  if (!parameter.is_available() || parameter.is_persistent()) return;
  report("fallback.release", next_graph_, {parameter.id()});
  gatherer_.partition(parameter);
}

void EagerFallback::report(const char* method, Graph graph,
                           const std::set<ParamId>& parameters) const {
  if (!context_.events.is_on()) return;
  HookEvent event;
  event.kind = EventKind::engine_call;
  event.name = context_.events.name(method);
  event.index = graph;
  for (const ParamId id : parameters) event.params.push_back(of(id).parameter().name_id);
  context_.events.send(std::move(event));
}

}  // namespace zeroproof
