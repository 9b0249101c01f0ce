#include "props/foreign/node_compare.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeroproof {
namespace {

Diagnosis difference(const RankDump& first, const RankDump& other, std::size_t index) {
  Diagnosis found{.kind = "autograd.node_order_differs",
                  .gravity = Gravity::hazard,
                  .ranks = {first.rank, other.rank}};
  found.what =
      fmt::format("node {} of the backward is {} on rank {} and {} on rank {}", index,
                  first.nodes[index].name, first.rank, other.nodes[index].name, other.rank);
  found.files = {first.path, other.path};
  found.rule = "bucketed reductions need the same order of gradients on all ranks";
  found.look_at =
      "what makes the graphs of the two ranks differ: branches, other shapes, modules that only "
      "one of them uses; stages of a pipeline differ by design";
  return found;
}

}  // namespace

std::optional<Diagnosis> compare_nodes(const std::vector<RankDump>& run) {
  const RankDump* first = nullptr;
  for (const RankDump& dump : run) {
    if (dump.nodes.empty()) continue;
    if (first == nullptr) first = &dump;
    const std::size_t common = std::min(dump.nodes.size(), first->nodes.size());
    const auto end = dump.nodes.begin() + static_cast<std::ptrdiff_t>(common);
    const auto mine =
        std::mismatch(dump.nodes.begin(), end, first->nodes.begin(),
                      [](const DumpedNode& a, const DumpedNode& b) { return a.name == b.name; })
            .first;
    if (mine != end)
      return difference(*first, dump, static_cast<std::size_t>(mine - dump.nodes.begin()));
  }
  return std::nullopt;
}

}  // namespace zeroproof
