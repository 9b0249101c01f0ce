#include "engine/zero/stage3/fetch_trace.h"

#include <algorithm>
#include <string>

#include "zeroproof/engine/engine_error.h"

namespace zeroproof {

void FetchTrace::restart() {
  if (mode_ == TraceMode::invalid) {
    mode_ = TraceMode::record;
  } else {
    mode_ = TraceMode::complete;
  }
  queue_.assign(order_.begin(), order_.end());
  std::ranges::fill(fetched_for_, kNever);
  step_ = 0;
}

void FetchTrace::construct_order() {
  order_.clear();
  for (std::size_t step = 0; step < modules_.size(); ++step) {
    ParameterList used = modules_[step]->parameters();
    std::ranges::sort(used, {}, [](const PartitionedParameter* p) { return p->id(); });
    for (PartitionedParameter* parameter : used)
      order_.push_back({parameter, static_cast<std::int64_t>(step)});
  }
}

bool FetchTrace::expects(const Zero3Module& module) const {
  if (!is_complete()) return true;
  const auto at = static_cast<std::size_t>(step_);
  return at < modules_.size() && modules_[at] == &module;
}

void FetchTrace::record(Zero3Module& module) {
  if (mode_ != TraceMode::record)
    throw EngineError(EngineErrorId::fetch_bookkeeping_out_of_order,
                      "attempted to record module " + module.name + " outside a recording");
  modules_.push_back(&module);
}

void FetchTrace::invalidate() {
  if (mode_ == TraceMode::invalid)
    throw EngineError(EngineErrorId::fetch_bookkeeping_out_of_order,
                      "attempted to invalidate a trace that is invalid already");
  mode_ = TraceMode::invalid;
  modules_.clear();
  order_.clear();
  queue_.clear();
  std::ranges::fill(fetched_for_, kNever);
}

void FetchTrace::take_for(const ParameterList& needed) {
  ParameterList missing;
  for (PartitionedParameter* parameter : needed)
    if (fetched_for(*parameter) < step_) missing.push_back(parameter);
  ParameterList taken;
  while (!queue_.empty() && taken.size() < missing.size()) {
    const Entry entry = queue_.front();
    queue_.pop_front();
    fetched_for(*entry.parameter) = entry.step;
    if (!contains(taken, entry.parameter)) taken.push_back(entry.parameter);
  }
  if (std::ranges::is_permutation(taken, missing)) return;
  throw EngineError(EngineErrorId::fetch_order_changed,
                    "tracing error at step " + std::to_string(step_) + ": the module's " +
                        std::to_string(missing.size()) +
                        " parameters are not the next ones of the recorded order");
}

PartitionedParameter& FetchTrace::take_next() {
  const Entry entry = queue_.front();
  queue_.pop_front();
  fetched_for(*entry.parameter) = std::max(fetched_for(*entry.parameter), entry.step);
  return *entry.parameter;
}

}  // namespace zeroproof
