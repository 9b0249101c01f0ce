#include "engine/runtime/cuda/gpu_set.h"

#include <algorithm>

#include "engine/runtime/cuda/check.h"

namespace zeroproof::cuda {
namespace {

GpuSet::Communicators make(const std::vector<std::shared_ptr<Gpu>>& gpus,
                           const std::vector<int>& ranks) {
  ncclUniqueId id;
  ZP_NCCL(ncclGetUniqueId(&id));
  GpuSet::Communicators made;
  ZP_NCCL(ncclGroupStart());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    made.push_back(std::make_shared<NcclCommunicator>());
    gpus[static_cast<std::size_t>(ranks[i])]->make_current();
    made[i]->join(id, static_cast<int>(i), static_cast<int>(ranks.size()));
  }
  ZP_NCCL(ncclGroupEnd());
  return made;
}

}  // namespace

GpuSet::GpuSet(int count) {
  for (int ordinal = 0; ordinal < count; ++ordinal) gpus_.push_back(std::make_shared<Gpu>(ordinal));
}

const GpuSet::Communicators& GpuSet::communicators(GroupKind kind, const std::vector<int>& ranks) {
  Communicators& of = communicators_[{kind, ranks}];
  const bool is_dead = std::ranges::any_of(
      of, [](const auto& communicator) { return communicator->failure().has_value(); });
  if (of.empty() || is_dead) of = make(gpus_, ranks);
  return of;
}

}  // namespace zeroproof::cuda
