// Releases (docs/spec/zero.md 3.4, 3.6).
#include <algorithm>

#include "engine/zero/stage3/parameter_coordinator.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/internal/engine/hooks/backward_tracker.h"

namespace zeroproof {

void ParameterCoordinator::release(const ModuleCall& call, bool is_forward) {
  report(EventKind::zmod_release, call, is_forward);
  std::set<ParamId> candidates = releasable(*call.module);
  ActiveBackward ended{.call = call};
  if (!is_forward) {
    if (active_.empty())
      throw EngineError(
          EngineErrorId::release_outside_backward,
          "the backward of " + call.module->name + " ended, but no module's backward is under way");
    const auto at = find_active(call);
    if (at == active_.end() && !knows_modules_alone()) return;
    if (at != active_.end()) {
      ended = std::move(*at);
      active_.erase(at);
    }
    for (const PartitionedParameter* parameter : ended.recomputed)
      if (!parameter->is_persistent()) candidates.insert(parameter->id());
    if (has_memo() && trace_.is_complete())
      memo_[{call.module->id, trace_.step()}] = candidates;  // the memoised set itself grows
    return drop(ended, candidates);
  }
  for (PartitionedParameter* parameter : call.module->parameters()) {
    parameter->remove_use(use_of(call, true));
    if (candidates.contains(parameter->id()) && !parameter->is_external())
      release_unused(*parameter);
  }
}

void ParameterCoordinator::drop(const ActiveBackward& active, const std::set<ParamId>& candidates) {
  if (active.keeps_graph) retained_->hold(active.call);
  ParameterList held = active.call.module->parameters();
  for (PartitionedParameter* parameter : active.recomputed)
    if (!contains(held, parameter)) held.push_back(parameter);
  for (PartitionedParameter* parameter : held) {
    parameter->remove_use(use_of(active.call, false));
    if (candidates.contains(parameter->id()) && !parameter->is_external())
      release_unused(*parameter);
  }
}

void ParameterCoordinator::abandon_forward(const ModuleCall& call) {
  // Upstream reports no end where a recompute has what it needs and stops.
  if (!is_recomputing()) report(EventKind::zmod_release, call, true);
  for (PartitionedParameter* parameter : call.module->parameters()) {
    parameter->remove_use(use_of(call, true));
    gatherer_.wait(*parameter);
    if (!parameter->is_persistent() && !parameter->is_external()) release_unused(*parameter);
  }
}

void ParameterCoordinator::release_unused(PartitionedParameter& parameter) {
  const bool is_users = parameter.user_depth() > 0;
  if (!parameter.is_available() || parameter.is_used() || is_users) return;
  if (retained_->is_held(parameter)) {
    gatherer_.cache_whole(parameter);
  } else {
    gatherer_.partition(parameter);
  }
  counted_live_ -= parameter.elements();
}

std::set<ParamId> ParameterCoordinator::releasable(const Zero3Module& module) {
  if (!trace_.is_complete()) {
    // Upstream's first pass releases persistent ones as well (H17).
    std::set<ParamId> all;
    for (const PartitionedParameter* parameter : module.parameters())
      if (has_memo() || !parameter->is_persistent()) all.insert(parameter->id());
    return all;
  }
  if (!has_memo()) return releasable_by_trace(module);
  const auto key = std::pair(module.id, trace_.step());
  const auto known = memo_.find(key);
  if (known != memo_.end()) return known->second;
  return memo_[key] = releasable_by_trace(module);
}

// Kept: what is needed again soon, and what was skipped when gathering ahead because it was there.
std::set<ParamId> ParameterCoordinator::releasable_by_trace(const Zero3Module& module) const {
  std::set<ParamId> candidates;
  for (const PartitionedParameter* parameter : module.parameters())
    if (!parameter->is_persistent() && !trace_.is_fetched_beyond(*parameter, trace_.step()))
      candidates.insert(parameter->id());
  std::int64_t traversed = 0;
  const std::vector<Zero3Module*>& modules = trace_.modules();
  const std::int64_t next = trace_.step();
  for (auto step = static_cast<std::size_t>(next); step < modules.size(); ++step) {
    if (traversed >= context_.config.stage3_max_reuse_distance) break;
    const ParameterList used = modules[step]->parameters();
    for (const PartitionedParameter* parameter : used) {
      candidates.erase(parameter->id());
      traversed += parameter->elements();
    }
  }
  return candidates;
}

void ParameterCoordinator::release_backward_leftovers(bool is_reported) {
  std::optional<Events::Call> reported;
  if (is_reported) reported.emplace(context_.events, "coord.release_backward_leftovers");
  if (!is_reported && !active_.empty()) context_.events.mark("backward_left_modules");
  while (!active_.empty()) {
    ActiveBackward newest = std::move(active_.back());
    active_.pop_back();
    std::set<ParamId> candidates;
    for (const PartitionedParameter* parameter : newest.call.module->parameters())
      if (!parameter->is_persistent()) candidates.insert(parameter->id());
    for (const PartitionedParameter* parameter : newest.recomputed)
      if (!parameter->is_persistent()) candidates.insert(parameter->id());
    drop(newest, candidates);
  }
  if (!context_.upstream.all) release_all_unused();
}

// A backward that failed may have freed any part of its graph.
void ParameterCoordinator::end_task(bool raised) {
  if (raised) {
    retained_->clear();
    for (ActiveBackward& active : active_) active.keeps_graph = false;
  }
  if (!context_.tracker.tasks().empty()) return;
  for (const std::int64_t graph : std::exchange(passed_, {})) retained_->end(graph);
}

void ParameterCoordinator::release_all_unused() {
  gatherer_.wait_all_or_drop_unissued();
  for (PartitionedParameter& parameter : gatherer_.parameters()) {
    if (!parameter.is_persistent() && !parameter.is_external()) release_unused(parameter);
  }
}

void ParameterCoordinator::release_and_reset_all() {
  const Events::Call reported(context_.events, "coord.release_and_reset_all");
  gatherer_.wait_all();
  retained_->clear();
  if (!context_.upstream.abort_leaks_state) active_.clear();
  for (PartitionedParameter& parameter : gatherer_.parameters()) {
    parameter.clear_uses();
    if (parameter.is_available()) gatherer_.partition(parameter);
    if (!parameter.is_partitioned())
      throw EngineError(EngineErrorId::parameter_not_released,
                        parameter.parameter().name + " was expected to be released");
  }
  counted_live_ = 0;
}

}  // namespace zeroproof
