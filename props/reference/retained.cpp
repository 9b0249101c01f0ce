#include "props/reference/retained.h"

namespace zeroproof::reference {

void Retained::begin_forward(ModuleCall call, std::int64_t forward, bool is_recompute) {
  if (call.is_known()) {
    if (!is_recompute) made_in_[call] = forward;
    return;
  }
  Calls& calls = calls_[call];
  if (calls.forwards == 0 && calls.is_sure) calls = {};
  ++calls.forwards;
  calls.is_sure = calls.is_sure && !is_recompute;
}

// Without numbers, a backward of one forward while another still waits for its first may be a
// second one.
void Retained::begin_backward(ModuleCall call, std::int64_t graph, std::int64_t task) {
  const auto made = made_in_.find(call);
  if (graph >= 0 && made != made_in_.end()) graph = made->second;
  Tasks& tasks = tasks_[graph];
  if (task != tasks.current) tasks = {.current = task, .previous = tasks.current};
  Calls& calls = calls_[call];
  calls.graph = graph;
  const bool is_first_in_task = calls.begun_in != task;
  const bool had_one = calls.begun_in >= 0;
  if (is_first_in_task) calls.kept_from = calls.forwards == 0 ? calls.ended_in : -1;
  calls.begun_in = task;
  if (call.is_known()) return;
  if (is_first_in_task && had_one && calls.forwards > 0) calls.is_sure = false;
  if (world_.unseen.has_many_outputs && !is_first_in_task) calls.is_sure = false;
  if (calls.forwards > 0) --calls.forwards;
}

// From here on its parameters are kept, if the graph is.
void Retained::end_backward(ModuleCall call) {
  Calls& calls = calls_[call];
  calls.ended_in = tasks_[calls.graph].current;
  if (!may_be_of_kept_graph(call, calls)) return;
  for (const std::size_t id : world_.modules[call.module].parameters) {
    is_lost_[id] = false;
    may_be_admitted_[id] = true;
  }
}

void Retained::clear() {
  calls_.clear();
  is_lost_.assign(is_lost_.size(), false);
  may_be_admitted_.assign(may_be_admitted_.size(), false);
}

// Another backward over the graph in between may have ended its life.
bool Retained::is_kept(ModuleCall call) const {
  const auto at = calls_.find(call);
  if (at == calls_.end() || !at->second.is_sure || !may_be_of_kept_graph(call, at->second))
    return false;
  const auto tasks = tasks_.find(at->second.graph);
  return at->second.kept_from >= 0 && at->second.kept_from == tasks->second.previous &&
         world_.config.stage3_max_live_parameters >= world_.elements();
}

bool Retained::may_keep(ModuleCall call) const {
  const auto at = calls_.find(call);
  return at != calls_.end() && at->second.ended_in >= 0 && may_be_of_kept_graph(call, at->second);
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
