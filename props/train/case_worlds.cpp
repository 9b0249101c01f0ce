#include "props/train/case_worlds.h"

#include <algorithm>

#include "props/train/case_additions.h"
#include "props/train/case_detours.h"
#include "props/train/case_rates.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kWorldStream = 0x776f726c6473ULL;
constexpr int kRanksMost = 4;

void change_ranks(CaseSpec& spec, Draws& draws) {
  spec.first_ranks = draws.between(1, kRanksMost);
  if (spec.first_ranks == spec.ranks) spec.first_ranks = spec.ranks % kRanksMost + 1;
  if (spec.sets_boundary == 3) spec.sets_boundary = 1;
  for (MicroSpec& micro : spec.micros) micro.rescales = micro.registers = 0;
  const std::vector<MicroSpec> first = spec.micros;
  if (spec.windows() < 2) spec.micros.insert(spec.micros.end(), first.begin(), first.end());
}

// A checkpoint of another stage is loaded, as every stage trains the same.
void change_stage(CaseSpec& spec, Draws& draws) {
  spec.ranks = draws.between(1, 2);
  change_ranks(spec, draws);
  if (spec.first_ranks == 3) spec.first_ranks = 4;
  spec.first_stage = (spec.stage + draws.between(1, 3)) % 4;
  spec.engines = 1;
  spec.experts = spec.leaf_by = spec.reads = spec.returns = spec.registers = 0;
  spec.is_wide = spec.skips_frames = spec.granularity = spec.is_manual = spec.reorders = 0;
  spec.is_offloaded = spec.offloads_params = spec.needs_all = spec.masters = 0;
  for (MicroSpec& micro : spec.micros) micro = {.repeats = micro.repeats, .peeks = micro.peeks};
  for (int i = 0; i < spec.accumulation; ++i) spec.micros[static_cast<std::size_t>(i)] = {};
}

// Replicas of what each rank of a data group trains, of which one alone may overflow.
void add_replicas(CaseSpec& spec, Draws& draws) {
  spec.tensor = 2;
  spec.ranks = draws.between(1, 2);
  spec.first_ranks = spec.reorders = spec.watches = 0;
  spec.clip = draws.below(3);
  for (LayerSpec& layer : spec.layers) layer.is_watched = 0;
  for (MicroSpec& micro : spec.micros)
    micro.restores = micro.detour = micro.detour_at = micro.shortage = micro.shortage_at =
        micro.lost_overflow = micro.overflow = micro.overflow_rank = micro.skips_on =
            micro.unread_on = micro.drops_on = 0;
  if (draws.one_in(2)) return;
  spec.precision = static_cast<int>(draws.one_in(3) ? Precision::bf16 : Precision::fp16);
  MicroSpec& micro =
      spec.micros[static_cast<std::size_t>(draws.below(static_cast<int>(spec.micros.size())))];
  micro.overflow = some_call(spec, draws);
  micro.overflow_rank = draws.below(spec.world_size());
  for (MicroSpec& other : spec.micros) other.asks = 0;
}

void share_sequences(CaseSpec& spec, Draws& draws) {
  spec.ranks = draws.one_in(2) ? 2 : 4;
  spec.sequence = 2;
  spec.tensor = 1;
  spec.first_ranks = spec.is_wide = 0;
  spec.first_stage = -1;
}

// One gradient of each weight, which bf16 has and no sum of.
void widen_sequences(CaseSpec& spec, Draws& draws) {
  share_sequences(spec, draws);
  make_plain(spec);
  spec.precision = static_cast<int>(Precision::bf16);
  spec.ranks = 4;
  spec.stage = draws.between(1, 2);
  spec.accumulation = 1;
  spec.is_dynamic = spec.owns_scale = spec.has_floor = spec.is_sum = spec.needs_all = 0;
  spec.is_lifted = spec.predivides = spec.prescales = spec.reduces_to_owners = 0;
  spec.is_manual = spec.takes_turns = spec.scales_second = 0;
  spec.is_wire_float32 = spec.accumulates_float32 = spec.masters = 0;
  spec.calls.resize(1);
  for (LayerSpec& layer : spec.layers) layer.has_twin = 0;
  for (MicroSpec& micro : spec.micros) micro = {.peeks = micro.peeks};
  spec.brims = 3;
}

std::string sequence_problem(const CaseSpec& spec) {
  if (spec.sequence == 1) return {};
  const bool is_right = spec.sequence == 2 && spec.ranks % 2 == 0 && spec.tensor == 1 &&
                        spec.first_ranks + spec.is_wide == 0;
  return is_right ? "" : "a sequence that nobody shares";
}

// What a rank does alone, or what files say, replicas would do, too.
std::string replica_problem(const CaseSpec& spec) {
  if (spec.tensor == 1) return {};
  if (spec.tensor != 2 || spec.world_size() > kRanksMost)
    return "a number of replicas out of range";
  const bool overflows =
      std::ranges::any_of(spec.micros, [](const MicroSpec& micro) { return micro.overflow != 0; });
  const auto is_alone = [&](const MicroSpec& micro) {
    const auto detour = static_cast<Detour>(micro.detour);
    const auto interrupt = static_cast<Interrupt>(micro.interrupt);
    return micro.restores + micro.shortage + micro.skips_on + micro.unread_on + micro.drops_on !=
               0 ||
           detour == Detour::save || detour == Detour::load || interrupt == Interrupt::save ||
           (overflows && micro.asks != 0);
  };
  const auto is_watched = [](const LayerSpec& layer) { return layer.is_watched != 0; };
  const bool is_right = spec.first_ranks + spec.reorders + spec.watches == 0 &&
                        std::ranges::none_of(spec.layers, is_watched) &&
                        std::ranges::none_of(spec.micros, is_alone);
  return is_right ? "" : "what not all replicas do";
}

}  // namespace

Additions world_additions() {
  static constexpr Addition kWorlds[] = {{2, change_ranks},
                                         {3, change_stage},
                                         {2, add_replicas},
                                         {3, share_sequences},
                                         {6, widen_sequences}};
  return {kWorldStream, 8, kWorlds};
}

std::string first_stage_problem(const CaseSpec& spec) {
  if (spec.first_stage == -1) return {};
  if (spec.first_stage < 0 || spec.first_stage > 3 || spec.first_stage == spec.stage ||
      spec.first_ranks == 0)
    return "a stage of no other ranks";
  const auto overflows = [](const MicroSpec& micro) { return micro.overflow != 0; };
  const auto is_plain = [](MicroSpec micro) {
    micro.repeats = micro.losses = 0;
    return micro == MicroSpec();
  };
  const auto first_window = spec.micros.begin() + spec.accumulation;
  if (spec.experts + spec.reads + spec.returns != 0 ||
      !std::all_of(spec.micros.begin(), first_window, is_plain))
    return "what each stage does in its own way";
  const bool has_three = spec.ranks == 3 || spec.first_ranks == 3;
  if (has_three || spec.is_wide != 0 || std::ranges::any_of(spec.micros, overflows))
    return "what each stage does in its own way";
  CaseSpec first = spec;
  first.stage = spec.first_stage;
  first.first_stage = -1;
  return why_invalid(first).empty() ? "" : "what no engine of that stage does";
}

std::string world_problem(const CaseSpec& spec) {
  if (const std::string problem = first_stage_problem(spec); !problem.empty()) return problem;
  if (const std::string problem = sequence_problem(spec); !problem.empty()) return problem;
  if (const std::string problem = replica_problem(spec); !problem.empty()) return problem;
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
  return step < windows_elsewhere(scenario) ? scenario.spec->first_ranks : cell.data_ranks();
}

bool has_gradients_apart(const TrainScenario& scenario) {
  const CaseSpec* const spec = scenario.spec;
  return spec && spec->tensor > 1 && std::ranges::any_of(spec->micros, [](const MicroSpec& micro) {
           return micro.overflow != 0;
         });
}

bool records_on_all_ranks(const CaseSpec& spec) {
  return spec.owns_scale != 1 && std::ranges::none_of(spec.micros, [](const MicroSpec& micro) {
           return changes_weights(micro) || micro.rescales != 0;
         });
}

CellRun run_first_world(const TrainScenario& scenario, const TrainCell& cell) {
  TrainCell first = cell;
  first.steps = windows_elsewhere(scenario);
  first.world_size = ranks_of_window(scenario, cell, 0);
  if (scenario.spec && scenario.spec->first_stage >= 0) first.stage = scenario.spec->first_stage;
  if (first.config) first.config->stage = first.stage;
  FirstChooser in_order;
  return run_ranks(scenario, first, {.chooser = &in_order});
}

}  // namespace zeroproof::train
