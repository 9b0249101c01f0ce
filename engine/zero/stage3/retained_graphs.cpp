#include "engine/zero/stage3/retained_graphs.h"

#include <algorithm>

namespace zeroproof {
namespace {

bool is_same(const ModuleCall& a, const ModuleCall& b) {
  return a.module == b.module && a.invocation == b.invocation;
}

}  // namespace

void RetainedGraphs::hold(const ModuleCall& call) {
  if (call.graph < 0) return;
  for (const PartitionedParameter* parameter : call.module->parameters()) {
    if (parameter->is_persistent() || parameter->is_external() || !admit(*parameter)) continue;
    std::vector<ModuleCall>& holders = holders_[parameter->id()];
    const auto is_it = [&](const ModuleCall& holder) { return is_same(holder, call); };
    if (std::ranges::none_of(holders, is_it)) holders.push_back(call);
    graphs_.insert(call.graph);
  }
}

bool RetainedGraphs::admit(const PartitionedParameter& parameter) {
  if (admitted_.contains(parameter.id())) return true;
  if (admitted_elements_ + parameter.elements() > elements_max_) return false;
  admitted_.insert(parameter.id());
  admitted_elements_ += parameter.elements();
  return true;
}

void RetainedGraphs::restore_cached(const ModuleCall& call) {
  if (holders_.empty()) return;
  ParameterList kept;
  for (PartitionedParameter* parameter : call.module->parameters()) {
    const auto at = holders_.find(parameter->id());
    if (at == holders_.end() || !parameter->is_kept()) continue;
    const auto is_it = [&](const ModuleCall& holder) { return is_same(holder, call); };
    if (std::ranges::any_of(at->second, is_it)) kept.push_back(parameter);
  }
  std::ranges::sort(kept, {}, [](const PartitionedParameter* p) { return p->id(); });
  gatherer_.restore_cached(kept);
}

std::int64_t RetainedGraphs::kept_elements_max() const {
  std::int64_t elements = 0;
  for (const ParamId id : admitted_) {
    const PartitionedParameter& parameter = gatherer_.of(id);
    if (parameter.is_partitioned()) elements += parameter.elements();
  }
  return elements;
}

template <class IsEnded>
void RetainedGraphs::drop_holders(IsEnded is_ended) {
  for (auto at = holders_.begin(); at != holders_.end();) {
    std::erase_if(at->second, is_ended);
    PartitionedParameter& parameter = gatherer_.of(at->first);
    const bool is_held = !at->second.empty();
    if (!is_held && parameter.is_kept()) parameter.evict_cached();
    at = is_held ? std::next(at) : holders_.erase(at);
  }
}

void RetainedGraphs::end(std::int64_t graph) {
  if (graphs_.erase(graph) == 0) return;
  drop_holders([&](const ModuleCall& holder) { return holder.graph == graph; });
  if (!graphs_.empty()) return;
  admitted_.clear();
  admitted_elements_ = 0;
}

void RetainedGraphs::forget(const ModuleCall& call) {
  drop_holders([&](const ModuleCall& holder) { return is_same(holder, call); });
}

void RetainedGraphs::clear() {
  drop_holders([](const ModuleCall&) { return true; });
  graphs_.clear();
  admitted_.clear();
  admitted_elements_ = 0;
}

}  // namespace zeroproof
