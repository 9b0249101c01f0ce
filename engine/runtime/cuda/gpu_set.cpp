#include "engine/runtime/cuda/gpu_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "engine/runtime/cuda/check.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof::cuda {
namespace {

int place_in(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

NcclClique::Hosts places_of(const std::vector<int>& ranks,
                            const std::vector<std::vector<int>>& hosts) {
  NcclClique::Hosts made;
  made.places.resize(ranks.size());
  made.local_size = static_cast<int>(hosts.front().size());
  for (std::size_t host = 0; host < hosts.size(); ++host)
    for (std::size_t rank = 0; rank < hosts[host].size(); ++rank)
      made.places[static_cast<std::size_t>(place_in(ranks, hosts[host][rank]))] = {
          static_cast<int>(host), static_cast<int>(rank)};
  return made;
}

}  // namespace

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
  std::shared_ptr<NcclClique> known = cliques_->find(key);
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

// The first rank makes the ids.
std::shared_ptr<NcclClique> GpuSet::join_clique(const CliqueKey& of) {
  const std::vector<int>& ranks = of.second;
  const std::string key =
      fmt::format("nccl/{}/{}/{}", static_cast<int>(of.first), fmt::join(ranks, "-"), made_[of]++);
  NcclClique::Ids ids;
  if (job_->rank() == ranks.front()) {
    for (ncclUniqueId& id : ids) ZP_NCCL(ncclGetUniqueId(&id));
    job_->set(key, {reinterpret_cast<const char*>(ids.data()), sizeof ids});
  } else {
    const std::string bytes = job_->wait(key, ranks.front(), "the id of their communicator");
    if (bytes.size() != sizeof ids)
      throw RuntimeFault("an id of NCCL that another version of it made");
    std::memcpy(ids.data(), bytes.data(), sizeof ids);
  }
  const NcclClique::Seat seat{place_in(ranks, job_->rank()), static_cast<int>(ranks.size()),
                              first().ordinal()};
  return std::make_shared<NcclClique>(seat, ids, *job_, share_memory(of, key));
}

// Ranks of several hosts share what those of each host do, if these are as many everywhere.
NcclClique::Shared GpuSet::share_memory(const CliqueKey& of, const std::string& key) {
  const std::vector<std::vector<int>> hosts = host_peers_->hosts_of(of.second);
  NcclClique::Shared shared;
  const std::size_t local = hosts.front().size();
  const auto is_even = [local](const std::vector<int>& host) { return host.size() == local; };
  if (local < 2 || !std::ranges::all_of(hosts, is_even)) return shared;
  if (hosts.size() == 1) {
    shared.peers = join_peers(of.second, key);
    return shared;
  }
  shared.hosts = std::make_unique<NcclClique::Hosts>(places_of(of.second, hosts));
  const NcclClique::Hosts::Place own =
      shared.hosts->places[static_cast<std::size_t>(place_in(of.second, job_->rank()))];
  shared.hosts->own = own;
  std::vector<int> between;
  for (const std::vector<int>& host : hosts)
    between.push_back(host[static_cast<std::size_t>(own.rank)]);
  shared.hosts->local = join_peers(hosts[static_cast<std::size_t>(own.host)], key);
  shared.hosts->between = clique(of.first, between);
  return shared;
}

// The first rank makes the memory that they share.
std::unique_ptr<Peers> GpuSet::join_peers(const std::vector<int>& ranks, const std::string& key) {
  const std::string place_key = fmt::format("{}/memory/{}", key, ranks.front());
  std::shared_ptr<SharedRegion> region;
  if (job_->rank() == ranks.front()) {
    region = HostPeers::make_region(ranks.size());
    job_->set(place_key, region->place());
  } else {
    const std::string place = job_->wait(place_key, ranks.front(), "the memory that they share");
    region = HostPeers::open_region(place, ranks.size());
  }
  return host_peers_->peers(ranks, place_in(ranks, job_->rank()),
                            gpus_[static_cast<std::size_t>(job_->rank())], region);
}

}  // namespace zeroproof::cuda
