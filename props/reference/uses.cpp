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

void Uses::end_forward(std::size_t module) {
  const auto at = std::find(forwards_.rbegin(), forwards_.rend(), module);
  if (at != forwards_.rend()) forwards_.erase(std::prev(at.base()), forwards_.end());
}

void Uses::shrink_to(std::size_t depth) {
  if (forwards_.size() > depth) forwards_.resize(depth);
}

void Uses::begin_backward(std::size_t module) {
  const auto at = std::ranges::find(backwards_, module, &Backward::module);
  if (at != backwards_.end()) {
    unsure_.insert(module);
    return;
  }
  backwards_.push_back({.module = module});
}

std::optional<Uses::Backward> Uses::end_backward(std::size_t module) {
  const auto at = std::ranges::find(backwards_, module, &Backward::module);
  if (at == backwards_.end()) return std::nullopt;
  const Backward ended = *at;
  if (!unsure_.contains(module)) backwards_.erase(at);
  return ended;
}

Uses::Ids Uses::backwards() const {
  Ids modules;
  for (const Backward& backward : backwards_) modules.push_back(backward.module);
  return modules;
}

void Uses::lend(std::size_t parameter) {
  if (!backwards_.empty()) backwards_.back().recomputed.insert(parameter);
}

void Uses::end_backwards(bool is_in_task) {
  if (is_in_task)
    for (const Backward& backward : backwards_) unsure_.insert(backward.module);
  backwards_.clear();
}

void Uses::clear() {
  forwards_.clear();
  backwards_.clear();
  unsure_.clear();
}

bool Uses::is_used_by_forward(std::size_t parameter) const {
  return std::ranges::any_of(forwards_, [&](std::size_t it) { return has(it, parameter); });
}

bool Uses::is_used(std::size_t parameter) const {
  const auto uses = [&](const Backward& it) {
    return it.recomputed.contains(parameter) || has(it.module, parameter);
  };
  return is_used_by_forward(parameter) || std::ranges::any_of(backwards_, uses);
}

bool Uses::is_unsure(std::size_t parameter) const {
  return std::ranges::any_of(unsure_, [&](std::size_t it) { return has(it, parameter); });
}

}  // namespace zeroproof::reference
