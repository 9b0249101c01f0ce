#include "props/train/case_worlds.h"

#include <algorithm>

#include "props/train/case_additions.h"
#include "props/train/case_detours.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kWorldStream = 0x776f726c6473ULL;
constexpr int kRanksMost = 4;

void change_ranks(CaseSpec& spec, Draws& draws) {
  spec.first_ranks = draws.between(1, kRanksMost);
  if (spec.first_ranks == spec.ranks) spec.first_ranks = spec.ranks % kRanksMost + 1;
  if (spec.sets_boundary == 3) spec.sets_boundary = 1;
  for (MicroSpec& micro : spec.micros) micro.rescales = micro.registers = 0;
  if (spec.windows() > 1) return;
  const std::vector<MicroSpec> first = spec.micros;
  spec.micros.insert(spec.micros.end(), first.begin(), first.end());
}

}  // namespace

Additions world_additions() {
  static constexpr Addition kWorlds[] = {{1, change_ranks}};
  return {kWorldStream, 16, kWorlds};
}

std::string world_problem(const CaseSpec& spec) {
  if (spec.first_ranks == 0) return {};
  if (spec.first_ranks < 0 || spec.first_ranks > kRanksMost || spec.first_ranks == spec.ranks)
    return "a number of ranks out of range";
  if (spec.windows() < 2) return "no window for other ranks";
  if (std::any_of(spec.micros.begin(), spec.micros.begin() + spec.accumulation, changes_weights))
    return "a load that undoes a change";
  const auto overflows = [&](const MicroSpec& micro) {
    return micro.overflow != 0 && micro.overflow_rank >= spec.first_ranks;
  };
  if (std::any_of(spec.micros.begin(), spec.micros.begin() + spec.accumulation, overflows))
    return "an overflow of a rank that is not there";
  // Ranks that differ in order are the last ones; ranks that run short are alike in each world.
  const auto is_short = [](const MicroSpec& micro) { return micro.shortage != 0; };
  if (spec.reorders != 0 || std::ranges::any_of(spec.micros, is_short))
    return "what other ranks would do otherwise";
  // What was said once is said to another engine.
  const auto is_told = [](const MicroSpec& micro) { return micro.rescales + micro.registers != 0; };
  if (spec.sets_boundary == 3 || spec.owns_scale == 3 || std::ranges::any_of(spec.micros, is_told))
    return "an engine that was told more";
  return {};
}

std::int64_t windows_elsewhere(const TrainScenario& scenario) {
  return scenario.spec && scenario.spec->first_ranks != 0 ? 1 : 0;
}

int ranks_of_window(const TrainScenario& scenario, const TrainCell& cell, std::int64_t step) {
  return step < windows_elsewhere(scenario) ? scenario.spec->first_ranks : cell.world_size;
}

CellRun run_first_world(const TrainScenario& scenario, const TrainCell& cell) {
  TrainCell first = cell;
  first.steps = windows_elsewhere(scenario);
  first.world_size = ranks_of_window(scenario, cell, 0);
  FirstChooser in_order;
  return run_ranks(scenario, first, {.chooser = &in_order});
}

}  // namespace zeroproof::train
