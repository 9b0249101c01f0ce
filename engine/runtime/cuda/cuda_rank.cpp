#include "engine/runtime/cuda/cuda_rank.h"

#include <fmt/format.h>

#include <utility>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {
namespace {

RankObservers observers_of(const CudaWorldOptions& options, int rank) {
  if (options.observers.empty()) return {};
  return options.observers[static_cast<std::size_t>(rank)];
}

}  // namespace

CudaRank::CudaRank(const CudaWorldOptions& options, int rank, const std::shared_ptr<Gpu>& gpu)
    : rank_(rank),
      world_size_(options.world_size),
      timeout_ms_(options.timeout_ms),
      device_(options.device),
      leaves_out_collectives_(options.leaves_out_collectives),
      collectives_(options.collectives),
      recording_(observers_of(options, rank)),
      gpu_(gpu),
      memory_(gpu, options.device, options.is_poisoned, recording_.accesses),
      staging_(*gpu, memory_),
      streams_(gpu, recording_.accesses),
      kernels_(gpu, options.arithmetic, streams_.log()),
      ops_(gpu, options.arithmetic),
      graphs_(gpu, kernels_),
      watchdog_(
          Watchdog::Milliseconds(options.timeout_ms),
          [this](const std::string& what, Watchdog::Milliseconds age) { end_wait(what, age); }) {
  gpu_->memory().clear();  // what an earlier world left
  gpu_->watchdog = &watchdog_;
  gpu_->while_waiting = [this](std::int64_t waited_ms) { check_progress(waited_ms); };
}

CudaRank::~CudaRank() {
  gpu_->forget_put_off();
  gpu_->while_waiting = nullptr;
  gpu_->watchdog = nullptr;
}

void CudaRank::join(host::GroupMembers members, std::shared_ptr<NcclClique> clique) {
  groups_.push_back(std::make_unique<NcclGroup>(std::move(members), std::move(clique), gpu_,
                                                staging_, collectives_, streams_.log()));
  if (leaves_out_collectives_) groups_.back()->set_communication_disabled();
}

std::optional<std::string> CudaRank::poll_error() {
  return host::take_failure(groups_);
}

void CudaRank::enter() {
  gpu_->make_current();
}

void CudaRank::leave() {
  for (const StreamRole role :
       {StreamRole::compute, StreamRole::reduction, StreamRole::all_gather, StreamRole::offload})
    streams_.of(role).synchronize();
}

void CudaRank::abort(const std::string& reason) {
  for (const std::unique_ptr<NcclGroup>& group : groups_) group->abort(reason);
}

void CudaRank::check_progress(std::int64_t waited_ms) {
  for (const std::unique_ptr<NcclGroup>& group : groups_) group->throw_if_failed();
  if (waited_ms < timeout_ms_) return;
  std::string what =
      graphs_.has_replayed() ? "a replay of the captured iteration" : "work that is no collective";
  for (const std::unique_ptr<NcclGroup>& group : groups_)
    if (const std::optional<std::string> pending = group->pending()) what = *pending;
  const std::string reason = fmt::format("rank {} waited {} ms for {}", rank_, waited_ms, what);
  abort(reason);
  throw RuntimeFault(reason);
}

// On the watchdog's thread: the rank's own is inside the driver, and an abort lets it out.
void CudaRank::end_wait(const std::string& what, Watchdog::Milliseconds age) {
  std::string oldest;
  for (const std::unique_ptr<NcclGroup>& group : groups_)
    if (const auto known = group->oldest_known()) oldest = "; the oldest collective is " + *known;
  abort(fmt::format("rank {} has been in {} for {} ms{}", rank_, what, age.count(), oldest));
}

}  // namespace zeroproof::cuda
