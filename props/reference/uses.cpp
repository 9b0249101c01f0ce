#include "props/reference/uses.h"

#include <algorithm>

namespace zeroproof::reference {

Uses::Ids Uses::parameters(std::size_t module) const {
  Ids all = world_.modules[module].parameters;
  const auto at = external_.find(module);
  if (at != external_.end()) all.insert(all.end(), at->second.begin(), at->second.end());
  return all;
}

void Uses::add_external(std::size_t module, std::size_t parameter) {
  if (!has(module, parameter)) external_[module].push_back(parameter);
}

bool Uses::has(std::size_t module, std::size_t parameter) const {
  const Ids all = parameters(module);
  return std::ranges::find(all, parameter) != all.end();
}

void Uses::end_forward(ModuleCall call) {
  const auto at = std::find(forwards_.rbegin(), forwards_.rend(), call);
  if (at != forwards_.rend()) forwards_.erase(std::prev(at.base()), forwards_.end());
}

void Uses::shrink_to(std::size_t depth) {
  if (forwards_.size() > depth) forwards_.resize(depth);
}

void Uses::begin_backward(ModuleCall call) {
  const auto at = std::ranges::find(backwards_, call, &Backward::call);
  if (at == backwards_.end()) {
    backwards_.push_back({.call = call});
  } else if (!call.is_known()) {
    unsure_.insert(call.module);
  }
}

std::optional<Uses::Backward> Uses::end_backward(ModuleCall call) {
  const auto at = std::ranges::find(backwards_, call, &Backward::call);
  if (at == backwards_.end()) return std::nullopt;
  const Backward ended = *at;
  if (!unsure_.contains(call.module)) backwards_.erase(at);
  return ended;
}

std::vector<ModuleCall> Uses::backwards() const {
  std::vector<ModuleCall> calls;
  for (const Backward& backward : backwards_) calls.push_back(backward.call);
  return calls;
}

void Uses::lend(std::size_t parameter) {
  if (!backwards_.empty()) backwards_.back().recomputed.insert(parameter);
}

void Uses::end_backwards(bool is_in_task) {
  if (is_in_task)
    for (const Backward& backward : backwards_)
      if (!backward.call.is_known()) unsure_.insert(backward.call.module);
  backwards_.clear();
}

void Uses::clear() {
  forwards_.clear();
  backwards_.clear();
  unsure_.clear();
}

bool Uses::is_used_by_forward(std::size_t parameter) const {
  return std::ranges::any_of(forwards_,
                             [&](const ModuleCall& it) { return has(it.module, parameter); });
}

bool Uses::is_used(std::size_t parameter) const {
  const auto uses = [&](const Backward& it) {
    return it.recomputed.contains(parameter) || has(it.call.module, parameter);
  };
  return is_used_by_forward(parameter) || std::ranges::any_of(backwards_, uses);
}

bool Uses::is_unsure(std::size_t parameter) const {
  return std::ranges::any_of(unsure_, [&](std::size_t it) { return has(it, parameter); });
}

}  // namespace zeroproof::reference
