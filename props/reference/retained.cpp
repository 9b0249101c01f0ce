#include "props/reference/retained.h"

namespace zeroproof::reference {

void Retained::begin_forward(std::size_t module, bool is_recompute) {
  Calls& calls = calls_[module];
  if (calls.forwards == 0 && calls.is_sure) calls = {};
  ++calls.forwards;
  calls.is_sure = calls.is_sure && !is_recompute;
}

// A backward of one forward while another still waits for its first may be a second one.
void Retained::begin_backward(std::size_t module, std::int64_t task) {
  if (task != current_) {
    previous_ = current_;
    current_ = task;
  }
  Calls& calls = calls_[module];
  const bool is_first_in_task = calls.begun_in != task;
  if (is_first_in_task) calls.kept_from = calls.forwards == 0 ? calls.ended_in : -1;
  if (is_first_in_task && calls.begun_in >= 0 && calls.forwards > 0) calls.is_sure = false;
  if (world_.unseen.has_many_outputs && !is_first_in_task) calls.is_sure = false;
  calls.begun_in = task;
  if (calls.forwards > 0) --calls.forwards;
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
bool Retained::is_kept(std::size_t module) const {
  const auto at = calls_.find(module);
  if (at == calls_.end() || !at->second.is_sure) return false;
  return at->second.kept_from >= 0 && at->second.kept_from == previous_ &&
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
