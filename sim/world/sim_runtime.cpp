#include "sim/world/sim_runtime.h"

#include <utility>

namespace zeroproof::sim {

SimRuntime::SimRuntime(const SimRuntimeOptions& options, RankControl& control)
    : options_(options),
      control_(control),
      clock_(control),
      memory_(options.memory, control),
      streams_(control, options.observers.accesses),
      kernels_(streams_) {}

void SimRuntime::join(host::GroupMembers members, std::shared_ptr<MeetingPoint> point) {
  groups_.push_back(std::make_unique<SimGroup>(std::move(members), std::move(point), streams_));
}

std::optional<std::string> SimRuntime::poll_error() {
  return host::take_failure(groups_);
}

void SimRuntime::abort(const std::string& reason) {
  for (const std::unique_ptr<SimGroup>& group : groups_) group->abort(reason);
}

}  // namespace zeroproof::sim
