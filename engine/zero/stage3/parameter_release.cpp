// Releases (zero_semantics 3.4, 3.6).
#include <algorithm>

#include "engine/engine_error.h"
#include "engine/zero/stage3/parameter_coordinator.h"

namespace zeroproof {

void ParameterCoordinator::release(const ModuleCall& call, bool is_forward) {
  report(EventKind::zmod_release, *call.module, is_forward);
  std::set<ParamId> candidates = releasable(*call.module);
  if (context_.departs("F12"_bug) && is_forward && is_recomputing())
    for (const PartitionedParameter* parameter : call.module->parameters())
      if (!parameter->is_persistent()) candidates.insert(parameter->id());
  ActiveBackward ended{.call = call};
  if (!is_forward) {
    pooled_.erase(call.module->id);
    if (active_.empty())
      throw EngineError(EngineErrorId::f3, "the backward of " + call.module->name +
                                               " ended, but no module's backward is under way");
    const auto at = find_active(call);
    const bool is_checked = context_.departs("F07"_bug) || context_.departs("F08"_bug);
    if (at == active_.end() && is_checked)
      throw EngineError(EngineErrorId::f3, call.module->name + " is released, and not gathered");
    if (at == active_.end() && !knows_modules_alone()) return;
    if (at != active_.end()) {
      ended = std::move(*at);
      active_.erase(at);
    }
    for (const PartitionedParameter* parameter : ended.recomputed)
      if (!parameter->is_persistent() || context_.departs("S96"_bug))
        candidates.insert(parameter->id());
    if (has_memo() && trace_.is_complete())
      memo_[{call.module->id, trace_.step()}] = candidates;  // the memoised set itself grows
    return drop(ended, candidates);
  }
  const bool keeps = context_.departs("F11"_bug) && is_recomputing();
  if (!keeps) pooled_.erase(call.module->id);
  for (PartitionedParameter* parameter : call.module->parameters()) {
    const bool stays = context_.departs("T78"_bug) && !candidates.contains(parameter->id());
    if (!stays) parameter->remove_use(use_of(call, true));
    if (keeps) continue;
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
  // Upstream tells of no end where a recompute has what it needs and stops.
  if (!is_recomputing()) report(EventKind::zmod_release, *call.module, true);
  for (PartitionedParameter* parameter : call.module->parameters()) {
    if (!context_.departs("U13"_bug)) parameter->remove_use(use_of(call, true));
    gatherer_.wait(*parameter);
    const bool stays = parameter->is_persistent() && !context_.departs("Z10"_bug);
    if (!stays && !parameter->is_external()) release_unused(*parameter);
  }
}

void ParameterCoordinator::release_unused(PartitionedParameter& parameter) {
  const bool is_users = parameter.user_depth() > 0 && !context_.departs("T47"_bug);
  if (!parameter.is_available() || parameter.is_used() || is_users) return;
  const bool is_roots = parameter.parameter().name.find('.') == std::string::npos;
  if (context_.departs("S86"_bug) && context_.is_coalescing && is_roots) return;
  if (retained_->is_held(parameter) && !context_.departs("F04"_bug)) {
    gatherer_.keep(parameter);
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
      if (has_memo() || context_.departs("E09"_bug) || !parameter->is_persistent())
        all.insert(parameter->id());
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
  const bool knows_prefetch = !context_.departs("F25"_bug);
  for (const PartitionedParameter* parameter : module.parameters())
    if (!parameter->is_persistent() &&
        !(knows_prefetch && trace_.is_fetched_beyond(*parameter, trace_.step())))
      candidates.insert(parameter->id());
  std::int64_t traversed = 0;
  const std::vector<Zero3Module*>& modules = trace_.modules();
  const std::int64_t next = context_.departs("T54"_bug) ? trace_.step() + 1 : trace_.step();
  for (auto step = static_cast<std::size_t>(next); step < modules.size(); ++step) {
    const std::int64_t reach = context_.departs("R82"_bug) ? 1 : 0;  // up to it, not below it
    if (traversed >= context_.config.stage3_max_reuse_distance + reach) break;
    const bool is_own_alone = context_.departs("V08"_bug);
    const ParameterList used = is_own_alone ? modules[step]->own : modules[step]->parameters();
    for (const PartitionedParameter* parameter : used) {
      candidates.erase(parameter->id());
      const bool is_of_rank = context_.departs("Z75"_bug);  // what lies here of it
      traversed += is_of_rank ? parameter->slice_elements() : parameter->elements();
    }
  }
  return candidates;
}

void ParameterCoordinator::release_backward_leftovers(bool is_reported) {
  std::optional<Events::Call> reported;
  if (is_reported) reported.emplace(context_.events, "coord.release_backward_leftovers");
  pooled_.clear();
  if (context_.departs("F02"_bug)) active_.clear();
  if (!is_reported && !active_.empty()) context_.events.mark("backward_left_modules");
  if (context_.departs("A35"_bug))  // nothing drains what no gradient hook releases
    std::erase_if(active_, [](const ActiveBackward& active) {
      const auto is_trained = [](const PartitionedParameter* it) {
        return it->parameter().requires_grad;
      };
      return std::ranges::none_of(active.call.module->own, is_trained);
    });
  while (!active_.empty()) {
    ActiveBackward newest = std::move(active_.back());
    if (context_.departs("S74"_bug)) newest.recomputed.clear();  // its own end gives them back
    active_.pop_back();
    std::set<ParamId> candidates;
    const bool is_all = context_.departs("R46"_bug);  // nothing stays behind a backward
    for (const PartitionedParameter* parameter : newest.call.module->parameters())
      if (is_all || !parameter->is_persistent()) candidates.insert(parameter->id());
    for (const PartitionedParameter* parameter : newest.recomputed)
      if (!parameter->is_persistent()) candidates.insert(parameter->id());
    drop(newest, candidates);
  }
  if (!context_.is_upstream()) release_all_unused();
}

void ParameterCoordinator::begin_task(GraphTaskId task, bool keeps_graph) {
  keeps_graph_[task] = keeps_graph;
}

// A backward that failed may have freed any part of its graph.
void ParameterCoordinator::end_task(GraphTaskId task, bool raised) {
  if (!raised || !context_.departs("R74"_bug)) keeps_graph_.erase(task);
  if (raised) {
    if (!context_.departs("R79"_bug)) retained_->clear();
    if (!context_.departs("T67"_bug))
      for (ActiveBackward& active : active_) active.keeps_graph = false;
  }
  const bool is_any = context_.departs("R59"_bug);  // a nested one is a backward, too
  if (!keeps_graph_.empty() && !is_any) return;
  if (context_.departs("W17"_bug)) return passed_.clear();
  for (const std::int64_t graph : std::exchange(passed_, {})) retained_->end(graph);
}

void ParameterCoordinator::lose(const ModuleCall& call) {
  const auto at = find_active(call);
  if (at != active_.end()) active_.erase(at);
}

void ParameterCoordinator::release_all_unused() {
  if (context_.departs("F19"_bug)) return;
  gatherer_.settle_all();
  if (context_.departs("F06"_bug)) return;  // what was gathered for a backward that did not come
  for (PartitionedParameter& parameter : gatherer_.parameters()) {
    const bool is_left = (context_.departs("A35"_bug) && !parameter.parameter().requires_grad) ||
                         gathered_late_.contains(parameter.id());
    if (!parameter.is_persistent() && !parameter.is_external() && !is_left)
      release_unused(parameter);
  }
}

void ParameterCoordinator::release_and_reset_all() {
  const Events::Call reported(context_.events, "coord.release_and_reset_all");
  if (!context_.departs("F19"_bug)) gatherer_.wait_all();
  gathered_late_.clear();
  pooled_.clear();
  if (!context_.departs("V11"_bug)) retained_->clear();
  if (!context_.has(Quirk::h1_abort_leaks_state)) active_.clear();
  for (PartitionedParameter& parameter : gatherer_.parameters()) {
    parameter.clear_uses();
    if (context_.departs("T58"_bug) && parameter.is_persistent()) continue;  // it stays whole
    if (parameter.is_available()) gatherer_.partition(parameter);
    if (!parameter.is_partitioned())
      throw EngineError(EngineErrorId::f4,
                        parameter.parameter().name + " was expected to be released");
  }
  counted_live_ = 0;
}

}  // namespace zeroproof
