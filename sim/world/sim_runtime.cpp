#include "sim/world/sim_runtime.h"

#include <utility>

namespace zeroproof::sim {

SimRuntime::SimRuntime(const SimRuntimeOptions& options, RankControl& control)
    : options_(options),
      control_(control),
      late_(options.is_compute_late ? std::make_shared<LateDevice>() : nullptr),
      clock_(control),
      memory_(options.memory, control, late_),
      streams_(control, options.observers.accesses, options.is_compute_late),
      kernels_(streams_) {
  if (!late_) return;
  late_->streams = &streams_;
  late_->waits_before_first_use = options.waits_before_first_use;
  late_ops_ = std::make_unique<LateOps>(late_);
}

// Tensors may outlive it; no work on them is left.
SimRuntime::~SimRuntime() {
  if (late_) late_->streams = nullptr;
}

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
