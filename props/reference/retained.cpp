#include "props/reference/retained.h"

namespace zeroproof::reference {

void Retained::begin_forward(std::size_t module, bool is_recompute) {
  Calls& calls = calls_[module];
  ++calls.forwards;
  calls.is_recomputed = calls.is_recomputed || is_recompute;
}

void Retained::begin_backward(std::int64_t task) {
  if (task == current_) return;
  previous_ = current_;
  current_ = task;
}

// From here on its parameters are kept, if the graph is.
void Retained::end_backward(std::size_t module) {
  calls_[module].ended_in = current_;
  for (const std::size_t id : world_.modules[module].parameters) is_lost_[id] = false;
}

void Retained::clear() {
  calls_.clear();
  is_lost_.assign(is_lost_.size(), false);
}

// Another backward in between may have ended the graph's life.
bool Retained::is_kept(std::size_t module, std::int64_t task) const {
  const auto at = calls_.find(module);
  if (at == calls_.end() || at->second.forwards != 1 || at->second.is_recomputed) return false;
  const std::int64_t ended_in = at->second.ended_in;
  return ended_in >= 0 && ended_in == previous_ && task == current_ && ended_in != task &&
         world_.config.stage3_max_live_parameters >= world_.elements();
}

bool Retained::may_keep(std::size_t module) const {
  const auto at = calls_.find(module);
  return at != calls_.end() && at->second.ended_in >= 0;
}

std::int64_t Retained::reclaim(std::size_t parameter, std::int64_t task) {
  if (task != task_) reclaimed_.clear();
  task_ = task;
  reclaimed_.insert(parameter);
  std::int64_t sum = 0;
  for (const std::size_t id : reclaimed_) sum += world_.parameters[id].elements;
  return sum;
}

}  // namespace zeroproof::reference
