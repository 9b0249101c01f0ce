#include "engine/runtime/cuda/gpu_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "engine/runtime/cuda/check.h"
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
      gpus_(static_cast<std::size_t>(job_->size())),
      cliques_(std::make_shared<Cliques>()) {
  gpus_[static_cast<std::size_t>(job_->rank())] = std::make_shared<Gpu>(ordinal);
  failure_handle_ = job_->on_failure(
      [cliques = cliques_](const std::string& failure) { cliques->abort(failure); });
}

// Communicators of several processes end together.
GpuSet::~GpuSet() {
  try {
    if (job_ && !job_->failure()) job_->barrier();
  } catch (const RuntimeFault& fault) {
    cliques_->abort(fault.what());
  }
}

std::shared_ptr<NcclClique> GpuSet::clique(GroupKind kind, const std::vector<int>& ranks) {
  const CliqueKey key{kind, ranks};
  const std::shared_ptr<NcclClique> known = cliques_->find(key);
  if (known && !known->is_dead()) return known;
  std::shared_ptr<NcclClique> made = make_clique(key);
  cliques_->put(key, made);
  return made;
}

// A rank's GPU is the one of its number; between processes the first rank's makes the id.
std::shared_ptr<NcclClique> GpuSet::make_clique(const CliqueKey& of) {
  const std::vector<int>& ranks = of.second;
  if (!job_) {
    std::vector<std::shared_ptr<Gpu>> gpus;
    for (const int rank : ranks) gpus.push_back(gpus_[static_cast<std::size_t>(rank)]);
    return std::make_shared<NcclClique>(gpus);
  }
  const std::string key =
      fmt::format("nccl/{}/{}/{}", static_cast<int>(of.first), fmt::join(ranks, "-"), made_[of]++);
  ncclUniqueId id;
  if (job_->rank() == ranks.front()) {
    ZP_NCCL(ncclGetUniqueId(&id));
    job_->set(key, {id.internal, sizeof id.internal});
  } else {
    const std::string bytes = job_->wait(key, ranks.front(), "the id of their communicator");
    if (bytes.size() != sizeof id.internal)
      throw RuntimeFault("an id of NCCL that another version of it made");
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
  }
  const auto seat = std::ranges::find(ranks, job_->rank()) - ranks.begin();
  const int ordinal = gpus_[static_cast<std::size_t>(job_->rank())]->ordinal();
  return std::make_shared<NcclClique>(
      NcclClique::Seat{static_cast<int>(seat), static_cast<int>(ranks.size()), ordinal}, id, *job_);
}

}  // namespace zeroproof::cuda
