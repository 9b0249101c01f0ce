#include "engine/zero/flat_partition.h"

#include <algorithm>

#include "model/check.h"

namespace zeroproof {

FlatRange intersect(const FlatRange& a, const FlatRange& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  const std::int64_t end = std::min(a.end(), b.end());
  return {begin, std::max<std::int64_t>(end - begin, 0)};
}

FlatPartition::FlatPartition(const std::vector<std::int64_t>& sizes, int ranks,
                             std::int64_t alignment)
    : ranks_(ranks) {
  ZP_CHECK(ranks > 0 && alignment > 0, "a partition has ranks and an alignment");
  for (const std::int64_t size : sizes) {
    parameters_.push_back({elements_, size});
    elements_ += size;
  }
  const std::int64_t unit = alignment * ranks;
  padding_ = (unit - elements_ % unit) % unit;
  elements_ += padding_;
}

FlatRange FlatPartition::slice(int rank) const {
  const std::int64_t size = elements_ / ranks_;
  return {rank * size, size};
}

FlatRange FlatPartition::owned(std::size_t index, int rank) const {
  return intersect(parameters_[index], slice(rank));
}

}  // namespace zeroproof
