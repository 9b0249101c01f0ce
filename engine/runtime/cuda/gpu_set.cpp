#include "engine/runtime/cuda/gpu_set.h"

namespace zeroproof::cuda {

GpuSet::GpuSet(int count) {
  for (int ordinal = 0; ordinal < count; ++ordinal) gpus_.push_back(std::make_shared<Gpu>(ordinal));
}

// A rank's GPU is the one of its number.
std::shared_ptr<NcclClique> GpuSet::clique(GroupKind kind, const std::vector<int>& ranks) {
  std::shared_ptr<NcclClique>& of = cliques_[{kind, ranks}];
  if (!of || of->is_dead()) of = std::make_shared<NcclClique>(ranks);
  return of;
}

}  // namespace zeroproof::cuda
