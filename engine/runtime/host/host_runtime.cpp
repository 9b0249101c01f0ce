#include "engine/runtime/host/host_runtime.h"

#include <utility>

namespace zeroproof::host {
namespace {

RankObservers observers_of(const HostWorldOptions& options, int rank) {
  if (options.observers.empty()) return {};
  return options.observers[static_cast<std::size_t>(rank)];
}

}  // namespace

HostRuntime::HostRuntime(const HostWorldOptions& options, int rank)
    : rank_(rank),
      world_size_(options.world_size),
      device_(options.device),
      recording_(observers_of(options, rank)),
      memory_({options.device, options.is_poisoned, options.capacity_bytes, recording_.accesses}),
      streams_(recording_.accesses),
      kernels_(streams_.log()) {}

void HostRuntime::join(GroupMembers members, std::shared_ptr<Rendezvous> rendezvous) {
  groups_.push_back(
      std::make_unique<HostGroup>(std::move(members), std::move(rendezvous), streams_.log()));
}

std::optional<std::string> HostRuntime::poll_error() {
  return take_failure(groups_);
}

void HostRuntime::enter() {
  for (const std::unique_ptr<HostGroup>& group : groups_)
    group->rendezvous().return_to(group->rank());
}

void HostRuntime::leave() {
  for (const std::unique_ptr<HostGroup>& group : groups_) group->rendezvous().leave(group->rank());
}

void HostRuntime::abort(const std::string& reason) {
  for (const std::unique_ptr<HostGroup>& group : groups_) group->abort(reason);
}

}  // namespace zeroproof::host
