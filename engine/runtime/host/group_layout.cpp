#include "zeroproof/internal/engine/runtime/host/group_layout.h"

#include <fmt/format.h>

#include "zeroproof/model/usage_error.h"

namespace zeroproof {
namespace {

using Groups = std::vector<std::vector<int>>;

// Neighbours by `count`.
Groups split(const std::vector<int>& ranks, int count) {
  Groups groups;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i % static_cast<std::size_t>(count) == 0) groups.emplace_back();
    groups.back().push_back(ranks[i]);
  }
  return groups;
}

// Every `count`-th.
Groups deal(const std::vector<int>& ranks, int count) {
  Groups groups(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ranks.size(); ++i)
    groups[i % static_cast<std::size_t>(count)].push_back(ranks[i]);
  return groups;
}

Groups within_each(const Groups& groups, int count,
                   Groups (*divide)(const std::vector<int>&, int)) {
  Groups all;
  for (const std::vector<int>& group : groups) {
    require(group.size() % static_cast<std::size_t>(count) == 0,
            fmt::format("a sequence or expert degree of {} does not divide the {} ranks of a data "
                        "group",
                        count, group.size()));
    for (std::vector<int>& part : divide(group, count)) all.push_back(std::move(part));
  }
  return all;
}

}  // namespace

Groups group_layout(GroupKind kind, int world_size, const ParallelDegrees& degrees) {
  require(degrees.tensor > 0 && degrees.sequence > 0 && degrees.expert > 0,
          fmt::format("parallel degrees are {}, {} and {}; give at least 1", degrees.tensor,
                      degrees.sequence, degrees.expert));
  require(world_size > 0 && world_size % degrees.tensor == 0,
          fmt::format("a tensor degree of {} does not divide the {} ranks of the world",
                      degrees.tensor, world_size));
  std::vector<int> world;
  for (int rank = 0; rank < world_size; ++rank) world.push_back(rank);
  if (kind == GroupKind::tensor) return split(world, degrees.tensor);
  Groups data = deal(world, degrees.tensor);
  switch (kind) {
    case GroupKind::sequence:
      return within_each(data, degrees.sequence, split);
    case GroupKind::expert:
      return within_each(data, degrees.expert, split);
    case GroupKind::expert_data:
      return within_each(data, degrees.expert, deal);
    default:
      return data;
  }
}

}  // namespace zeroproof
