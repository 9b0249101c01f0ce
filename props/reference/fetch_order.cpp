#include "props/reference/fetch_order.h"

#include <algorithm>

namespace zeroproof::reference {
namespace {

constexpr int kComparisonsOfOneList = 2;  // its length, and its entries

}  // namespace

int FetchOrder::comparisons() const {
  if (mode_ == Mode::complete) return 0;
  const int lists = mode_ == Mode::record ? 3 : 1;  // modules; parameters and their last uses
  return lists * kComparisonsOfOneList;
}

void FetchOrder::restart(const ParametersOf& parameters_of) {
  if (mode_ == Mode::record) {
    uses_.clear();
    for (std::size_t step = 0; step < modules_.size(); ++step) {
      Ids used = parameters_of(modules_[step]);
      std::ranges::sort(used);
      for (const std::size_t id : used) uses_.push_back({id, static_cast<std::int64_t>(step)});
    }
  }
  mode_ = mode_ == Mode::invalid ? Mode::record : Mode::complete;
  queue_.assign(uses_.begin(), uses_.end());
  std::ranges::fill(taken_for_, kNever);
  step_ = 0;
}

void FetchOrder::invalidate() {
  mode_ = Mode::invalid;
  modules_.clear();
  uses_.clear();
  queue_.clear();
  std::ranges::fill(taken_for_, kNever);
}

bool FetchOrder::expects(std::size_t module) const {
  const auto at = static_cast<std::size_t>(step_);
  return at < modules_.size() && modules_[at] == module;
}

bool FetchOrder::visit(std::size_t module) {
  if (mode_ == Mode::record) modules_.push_back(module);
  return mode_ != Mode::complete || expects(module);
}

bool FetchOrder::take_for(const Ids& parameters) {
  Ids missing;
  for (const std::size_t id : parameters)
    if (taken_for_[id] < step_) missing.push_back(id);
  Ids taken;
  while (!queue_.empty() && taken.size() < missing.size()) {
    const Use use = queue_.front();
    queue_.pop_front();
    taken_for_[use.parameter] = use.step;
    if (std::ranges::find(taken, use.parameter) == taken.end()) taken.push_back(use.parameter);
  }
  return std::ranges::is_permutation(taken, missing);
}

FetchOrder::Ids FetchOrder::take_ahead(std::int64_t room,
                                       const std::function<bool(std::size_t)>& is_free,
                                       const std::function<std::int64_t(std::size_t)>& elements) {
  Ids ahead;
  std::int64_t sum = 0;
  while (!queue_.empty() && sum < room) {
    const Use use = queue_.front();
    queue_.pop_front();
    taken_for_[use.parameter] = std::max(taken_for_[use.parameter], use.step);
    const bool is_taken = std::ranges::find(ahead, use.parameter) != ahead.end();
    if (is_taken || !is_free(use.parameter)) continue;
    ahead.push_back(use.parameter);
    sum += elements(use.parameter);
  }
  std::erase_if(ahead, [&](std::size_t id) { return elements(id) == 0; });
  std::ranges::sort(ahead);
  return ahead;
}

std::set<std::size_t> FetchOrder::freed(
    const Ids& candidates, std::int64_t reuse_distance, const ParametersOf& parameters_of,
    const std::function<std::int64_t(std::size_t)>& elements) const {
  std::set<std::size_t> freed(candidates.begin(), candidates.end());
  if (!is_complete()) return freed;
  std::erase_if(freed, [&](std::size_t id) { return taken_for_[id] > step_; });
  std::int64_t passed = 0;
  for (auto step = static_cast<std::size_t>(step_);
       step < modules_.size() && passed < reuse_distance; ++step)
    for (const std::size_t id : parameters_of(modules_[step])) {
      freed.erase(id);
      passed += elements(id);
    }
  return freed;
}

}  // namespace zeroproof::reference
