#include "props/train/reference_worlds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "props/train/engine_target.h"
#include "props/train/layer.h"
#include "zeroproof/internal/engine/runtime/host/group_layout.h"

namespace zeroproof::train {
namespace {

// Scenarios whose programs do what leaves no event; all others do not.
struct Known {
  std::string_view scenario;
  bool reference::Unseen::*does;
};
constexpr std::array kKnown = {Known{"undefined_grad", &reference::Unseen::lacks_gradients}};

}  // namespace

std::vector<std::string> tensor_group_names(int world_size, int tensor_ranks) {
  std::vector<std::string> names;
  if (tensor_ranks == 1) return names;
  for (const std::vector<int>& ranks :
       group_layout(GroupKind::tensor, world_size, {.tensor = tensor_ranks}))
    names.push_back(fmt::format("g{}", fmt::join(ranks, "_")));
  return names;
}

std::vector<reference::World> reference_worlds(const TrainScenario& scenario, const TrainCell& cell,
                                               const reference::Unseen& unseen) {
  std::vector<reference::World> worlds;
  for (std::size_t engine = 0; engine < scenario.models.size(); ++engine) {
    const auto module =
        make_model(scenario.models[engine], {.data = cell.data, .subject = cell.subject});
    reference::WorldOptions options{
        .ranks = cell.data_ranks(),
        .sequence_ranks = cell.sequence_degree,
        .tensor_ranks = cell.tensor_degree,
        .prefix = engine_prefix(engine),
        .skips_frames = scenario.skips_frames && cell.stage == 3,
        .other_groups = tensor_group_names(cell.world_size, cell.tensor_degree),
        .groups = {},
        .unseen = unseen};
    if (!scenario.leaf_module.empty()) options.leaves.emplace_back(scenario.leaf_module);
    worlds.push_back(reference::world_of(config_of(scenario, cell, engine), *module, options));
    worlds.back().counts_hooks = cell.policy != "exact";
    if (!cell.quirks.is_empty()) worlds.back().dialect = reference::Dialect::upstream;
  }
  return worlds;
}

reference::Unseen unseen_of(const TrainScenario& scenario, const TrainCell& cell) {
  reference::Unseen unseen{.keeps_graphs = true,
                           .gathers_inside = false,
                           .skips_sync = false,
                           .has_idle_forwards = true,
                           .reads_elsewhere = false,
                           .sets_scale = false,
                           .lacks_gradients = false,
                           .has_many_outputs = true,
                           .sets_leaves = false,
                           .marks_tiles = false,
                           .differentiates_inside = scenario.engines() > 1};
  for (const Known& known : kKnown)
    if (known.scenario == cell.scenario) unseen.*known.does = true;
  return unseen;
}

}  // namespace zeroproof::train
