#include "engine/runtime/cuda/gpu_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/process/byte_strings.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof::cuda {

// Used by the thread that makes worlds and by the job's.
class GpuSet::Cliques {
 public:
  std::shared_ptr<NcclClique> find(const CliqueKey& key) {
    const std::lock_guard lock(mutex_);
    return all_[key];
  }

  void put(const CliqueKey& key, std::shared_ptr<NcclClique> clique) {
    const std::lock_guard lock(mutex_);
    all_[key] = std::move(clique);
  }

  void clear() {
    std::map<CliqueKey, std::shared_ptr<NcclClique>> all;
    const std::lock_guard lock(mutex_);
    all_.swap(all);
  }

  void abort(const std::string& reason) {
    std::map<CliqueKey, std::shared_ptr<NcclClique>> all;
    {
      const std::lock_guard lock(mutex_);
      all = all_;
    }
    for (const auto& [key, clique] : all)
      if (clique) clique->abort(reason);
  }

 private:
  std::mutex mutex_;
  std::map<CliqueKey, std::shared_ptr<NcclClique>> all_;
};

GpuSet::GpuSet(int count) : cliques_(std::make_shared<Cliques>()) {
  for (int ordinal = 0; ordinal < count; ++ordinal) gpus_.push_back(std::make_shared<Gpu>(ordinal));
}

GpuSet::GpuSet(std::shared_ptr<Job> job, int ordinal)
    : job_(std::move(job)),
      host_peers_(std::make_unique<HostPeers>(*job_, ordinal)),
      gpus_(static_cast<std::size_t>(job_->size())),
      cliques_(std::make_shared<Cliques>()) {
  auto gpu = std::make_shared<Gpu>(ordinal);
  gpu->pool().use_segments(host_peers_->segments());
  gpus_[static_cast<std::size_t>(job_->rank())] = std::move(gpu);
  failure_handle_ = job_->on_failure(
      [cliques = cliques_](const std::string& failure) { cliques->abort(failure); });
}

// Communicators of several processes end together, and no memory goes before all have unmapped it.
GpuSet::~GpuSet() {
  try {
    if (!job_ || job_->failure()) return;
    job_->barrier();
    cliques_->clear();
    host_peers_ = nullptr;
    job_->barrier();
  } catch (const RuntimeFault& fault) {
    cliques_->abort(fault.what());
  }
}

bool GpuSet::reach_each_other() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < gpus_.size(); ++rank) ranks.push_back(static_cast<int>(rank));
  return job_ ? host_peers_->reach_each_other(ranks) : can_share_memory(ranks);
}

Gpu& GpuSet::first() const {
  return *gpus_[job_ ? static_cast<std::size_t>(job_->rank()) : 0];
}

std::shared_ptr<NcclClique> GpuSet::clique(GroupKind kind, const std::vector<int>& ranks) {
  const CliqueKey key{kind, ranks};
  const std::shared_ptr<NcclClique> known = cliques_->find(key);
  if (known && !known->is_dead()) return known;
  std::shared_ptr<NcclClique> made = make_clique(key);
  cliques_->put(key, made);
  return made;
}

// A rank's GPU is the one of its number.
std::shared_ptr<NcclClique> GpuSet::make_clique(const CliqueKey& of) {
  if (job_) return join_clique(of);
  std::vector<std::shared_ptr<Gpu>> gpus;
  for (const int rank : of.second) gpus.push_back(gpus_[static_cast<std::size_t>(rank)]);
  return std::make_shared<NcclClique>(gpus);
}

// The first rank makes the ids, and the memory that the ranks share if they reach each other's.
std::shared_ptr<NcclClique> GpuSet::join_clique(const CliqueKey& of) {
  const std::vector<int>& ranks = of.second;
  const bool has_copies = host_peers_->reach_each_other(ranks);
  const std::string key =
      fmt::format("nccl/{}/{}/{}", static_cast<int>(of.first), fmt::join(ranks, "-"), made_[of]++);
  NcclClique::Ids ids;
  std::shared_ptr<SharedRegion> region;
  if (job_->rank() == ranks.front()) {
    for (ncclUniqueId& id : ids) ZP_NCCL(ncclGetUniqueId(&id));
    if (has_copies) region = HostPeers::make_region(ranks.size());
    job_->set(key, pack({{reinterpret_cast<const char*>(ids.data()), sizeof ids},
                         region ? region->place() : std::string()}));
  } else {
    const auto parts = unpack(job_->wait(key, ranks.front(), "the id of their communicator"));
    if (!parts || parts->size() != 2 || parts->front().size() != sizeof ids)
      throw RuntimeFault("an id of NCCL that another version of it made");
    std::memcpy(ids.data(), parts->front().data(), sizeof ids);
    if (has_copies) region = HostPeers::open_region(parts->back(), ranks.size());
  }
  const auto seat = static_cast<int>(std::ranges::find(ranks, job_->rank()) - ranks.begin());
  const std::shared_ptr<Gpu>& gpu = gpus_[static_cast<std::size_t>(job_->rank())];
  return std::make_shared<NcclClique>(
      NcclClique::Seat{seat, static_cast<int>(ranks.size()), gpu->ordinal()}, ids, *job_,
      region ? host_peers_->peers(ranks, seat, gpu, region) : nullptr);
}

}  // namespace zeroproof::cuda
