#include "engine/runtime/cuda/nccl_clique.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "engine/runtime/bounded_work.h"
#include "engine/runtime/cuda/check.h"
#include "engine/runtime/host/rendezvous.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof::cuda {
namespace {

struct Connected {
  ncclResult_t result = ncclSuccess;
  ncclComm_t communicator = nullptr;
  ncclComm_t narrow = nullptr;
};

ncclConfig_t narrow_config() {
  constexpr int kFewLanes = 4;  // of 132 multiprocessors
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.maxCTAs = kFewLanes;
  return config;
}

// The communicators of this process's GPUs among themselves, by rank.
std::vector<ncclComm_t> connect(const std::vector<int>& ordinals, ncclConfig_t config) {
  ncclUniqueId id;
  ZP_NCCL(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> communicators(ordinals.size());
  const auto size = static_cast<int>(ordinals.size());
  ZP_NCCL(ncclGroupStart());
  for (int rank = 0; rank < size; ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    ZP_CUDA(cudaSetDevice(ordinals[place]));
    ZP_NCCL(ncclCommInitRankConfig(&communicators[place], size, id, rank, &config));
  }
  ZP_NCCL(ncclGroupEnd());
  return communicators;
}

// NCCL waits for the others without a limit, so on a thread that can be left. (A communicator that
// does not block would hand every collective to a thread of its own as well.)
std::future<Connected> connect(const NcclClique::Seat& seat, const NcclClique::Ids& ids) {
  auto promise = std::make_shared<std::promise<Connected>>();
  auto future = promise->get_future();
  std::thread([seat, ids, promise] {
    Connected made;
    ncclConfig_t wide = NCCL_CONFIG_INITIALIZER;
    wide.blocking = 1;
    ncclConfig_t narrow = narrow_config();
    cudaSetDevice(seat.ordinal);
    made.result = ncclCommInitRankConfig(&made.communicator, seat.size, ids[0], seat.rank, &wide);
    if (made.result == ncclSuccess)
      made.result = ncclCommInitRankConfig(&made.narrow, seat.size, ids[1], seat.rank, &narrow);
    promise->set_value(made);
  }).detach();
  return future;
}

}  // namespace

NcclClique::NcclClique(const std::vector<std::shared_ptr<Gpu>>& gpus) {
  std::vector<int> ordinals;
  for (const std::shared_ptr<Gpu>& gpu : gpus) ordinals.push_back(gpu->ordinal());
  const std::vector<ncclComm_t> wide = connect(ordinals, NCCL_CONFIG_INITIALIZER);
  const std::vector<ncclComm_t> narrow = connect(ordinals, narrow_config());
  for (std::size_t rank = 0; rank < ordinals.size(); ++rank) {
    Member& member = members_->emplace_back();
    member.ordinal = ordinals[rank];
    member.communicator = wide[rank];
    member.narrow = narrow[rank];
  }
  peers_ = thread_peers(gpus);
}

NcclClique::NcclClique(const Seat& seat, const Ids& ids, const Job& job, Shared shared)
    : peers_(std::move(shared.peers)),
      hosts_(std::move(shared.hosts)),
      members_(std::make_shared<Members>(static_cast<std::size_t>(seat.size))) {
  constexpr std::chrono::milliseconds kLook{20};
  const auto end = std::chrono::steady_clock::now() + job.timeout();
  std::future<Connected> connected = connect(seat, ids);
  while (connected.wait_for(kLook) != std::future_status::ready) {
    if (const auto failure = job.failure()) throw host::GroupAborted(*failure);
    if (std::chrono::steady_clock::now() >= end)
      throw RuntimeFault(
          fmt::format("rank {} waited {} ms for NCCL to connect the {} ranks of a "
                      "group (NCCL_DEBUG=INFO says more)",
                      job.rank(), job.timeout().count(), seat.size));
  }
  const Connected made = connected.get();
  check(made.result, "ncclCommInitRankConfig");
  Member& own = (*members_)[static_cast<std::size_t>(seat.rank)];
  own.ordinal = seat.ordinal;
  own.communicator = made.communicator;
  own.narrow = made.narrow;
}

NcclClique::~NcclClique() {
  if (!is_aborted_) end(is_dead() ? ncclCommAbort : ncclCommDestroy);
}

void NcclClique::call(int rank, NcclChannels lanes,
                      const std::function<ncclResult_t(ncclComm_t)>& nccl) {
  Member& member = (*members_)[static_cast<std::size_t>(rank)];
  const std::lock_guard lock(member.calls);
  if (is_aborted_) throw host::GroupAborted(reason_);
  const bool is_narrow = lanes == NcclChannels::limited && member.narrow != nullptr;
  check(nccl(is_narrow ? member.narrow : member.communicator), "a call of NCCL");
}

std::optional<std::string> NcclClique::failure(int rank) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (is_aborted_) return reason_;
  if (!lock) return std::nullopt;  // another rank asks, or is about to abort
  const Member& member = (*members_)[static_cast<std::size_t>(rank)];
  for (const ncclComm_t communicator : {member.communicator, member.narrow}) {
    if (communicator == nullptr) continue;
    ncclResult_t result = ncclSuccess;
    ncclCommGetAsyncError(communicator, &result);
    if (result == ncclSuccess || result == ncclInProgress) continue;
    return fmt::format("NCCL failed: {}: {}", ncclGetErrorString(result),
                       ncclGetLastError(communicator));
  }
  if (hosts_) return hosts_->between->failure(hosts_->own.host);
  return std::nullopt;
}

bool NcclClique::is_dead() {
  for (std::size_t rank = 0; rank < members_->size(); ++rank)
    if ((*members_)[rank].communicator && failure(static_cast<int>(rank))) return true;
  return false;
}

void NcclClique::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) return;
  reason_ = reason;
  is_aborted_ = true;
  // What NCCL's abort frees waits for them.
  if (peers_) peers_->barrier().release();
  if (hosts_) hosts_->local->barrier().release();
  if (hosts_) hosts_->between->abort(reason);
  if (!end(ncclCommAbort))
    fmt::print(stderr, "zeroproof: NCCL does not end its communicators; they stay\n");
}

// Each waits for the others of its process, so all at once. NCCL frees a communicator that another
// thread is still inside of, so that thread gets the time to leave: only one that waits for a peer
// needs longer, and only the end frees it. What an abort frees waits for all kernels of the
// GPU, those of the other communicator too: both at once.
// False: NCCL still runs for some, which stay allocated.
bool NcclClique::end(ncclResult_t (*ends)(ncclComm_t)) {
  constexpr std::chrono::seconds kLongestEnd{30};
  std::vector<std::function<void()>> works;
  for (std::size_t rank = 0; rank < members_->size(); ++rank)
    if ((*members_)[rank].communicator != nullptr)
      works.emplace_back([all = members_, rank, ends] { end_one((*all)[rank], ends); });
  return run_within(std::move(works), kLongestEnd);
}

void NcclClique::end_one(Member& member, ncclResult_t (*ends)(ncclComm_t)) {
  constexpr std::chrono::seconds kPatience{2};
  const std::unique_lock lock(member.calls, kPatience);
  const auto end_narrow = [&member, ends] {
    cudaSetDevice(member.ordinal);
    ends(member.narrow);
  };
  std::jthread beside;
  if (member.narrow != nullptr && ends == ncclCommAbort) beside = std::jthread(end_narrow);
  if (member.narrow != nullptr && ends != ncclCommAbort) end_narrow();
  cudaSetDevice(member.ordinal);
  ends(member.communicator);
}

}  // namespace zeroproof::cuda
