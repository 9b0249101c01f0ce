#include "props/train/case_orders.h"

#include <algorithm>
#include <utility>

#include "props/train/case_additions.h"
#include "props/train/case_rates.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kOrderStream = 0x6f7264657273ULL;

void take_stage3(CaseSpec& spec) {
  make_plain(spec);
  spec.stage = 3;
  spec.granularity = spec.skips_frames = spec.reuse = spec.prefetch = 0;
  spec.live = CaseSpec::kManyElements;
  for (MicroSpec& micro : spec.micros)
    micro = {.losses = micro.losses, .repeats = micro.repeats, .peeks = micro.peeks};
}

void take_shards(CaseSpec& spec) {
  take_stage3(spec);
  spec.ranks = std::max(spec.ranks, 2);
}

void run_in_other_orders(CaseSpec& spec, Draws& draws) {
  spec.ranks = std::max(spec.ranks, 2);
  spec.stage = 3;
  spec.engines = 1;
  spec.granularity = spec.skips_frames = spec.container = 0;
  spec.reorders = draws.between(1, spec.ranks);
}

void drop_on_one_rank(CaseSpec& spec, Draws& draws) {
  take_shards(spec);
  spec.persistence = draws.of({0, 0, 2});
  spec.prefetch = draws.of({0, 0, 4, 40});
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.outstanding = static_cast<int>(Outstanding::in_order);
    micro.drops_on = draws.between(1, spec.ranks);
  }
}

void take_branches(CaseSpec& spec, Draws& draws) {
  take_stage3(spec);
  spec.skips_frames = 1;
  if (spec.layers.size() < 2) spec.layers.push_back(spec.layers.front());
  spec.calls.clear();
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    spec.calls.push_back({.layer = static_cast<int>(i)});
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(3)) continue;
    micro.outstanding = static_cast<int>(Outstanding::in_order);
    micro.branches = some_call(spec, draws);
  }
}

// Every layer once and all of it trained, as often as it takes to record their order and follow it.
void follow_order(CaseSpec& spec, Draws& draws) {
  take_shards(spec);
  if (draws.one_in(2)) spec.layers.resize(4, {.inputs = draws.between(1, 3)});
  spec.calls.clear();
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    layer.is_frozen = layer.is_weight_frozen = 0;
    if (draws.one_in(2)) layer.outputs = draws.between(1, 3);
    spec.calls.push_back({.layer = static_cast<int>(i)});
  }
  for (MicroSpec& micro : spec.micros) micro = {.peeks = micro.peeks};
  const auto passes = static_cast<std::size_t>(3 + draws.below(2));
  if (spec.micros.size() < passes)
    spec.micros.resize(passes * static_cast<std::size_t>(spec.accumulation), spec.micros.back());
}

int elements_of(const CaseSpec& spec) {
  int elements = 1;
  for (const LayerSpec& layer : spec.layers) elements += layer.elements();
  return elements;
}

void bound_reuse(CaseSpec& spec, Draws& draws) {
  follow_order(spec, draws);
  spec.persistence = draws.of({0, 0, 2});
  spec.reuse = draws.between(1, elements_of(spec));
}

// Past what stays whole anyway.
void bound_prefetch(CaseSpec& spec, Draws& draws) {
  follow_order(spec, draws);
  spec.persistence = draws.between(1, 6);
  spec.persistence_all = CaseSpec::kManyElements;
  spec.prefetch = draws.between(1, elements_of(spec));
}

// --- what can be ------------------------------------------------------------------------------

bool has_one_call(const CaseSpec& spec, int call) {
  return std::ranges::count(spec.calls, spec.calls[static_cast<std::size_t>(call)].layer,
                            &CallSpec::layer) == 1;
}

// What the branch runs reaches something that is trained.
bool has_graph(const CaseSpec& spec, const MicroSpec& branch) {
  for (std::size_t i = 0; i < spec.calls.size(); ++i) {
    const LayerSpec& layer = spec.layers[static_cast<std::size_t>(spec.calls[i].layer)];
    if (branch.skips != static_cast<int>(i) + 1 && layer.is_frozen == 0 && layer.outputs > 0)
      return true;
  }
  return spec.input_grad != 0;
}

// Its weight has a user besides its layer.
bool is_read_past(const CaseSpec& spec, int call) {
  const int layer = spec.calls[static_cast<std::size_t>(call)].layer + 1;
  return spec.reads == layer || spec.returns == layer;
}

std::string branch_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.branches < 0 || micro.branches > static_cast<int>(spec.calls.size()))
    return "a micro-batch that names no call";
  if (micro.branches == 0) return {};
  if (spec.skips_frames == 0 || spec.calls.size() < 2 ||
      static_cast<Outstanding>(micro.outstanding) != Outstanding::in_order ||
      micro.skips + micro.overflow + micro.interrupt + micro.wrapped + micro.throws + micro.looks +
              micro.abandons + micro.gathers + micro.clears !=
          0)
    return "no two branches of skipped frames";
  const MicroSpec second = branch_of(spec, micro, 1);
  const bool is_right = has_graph(spec, branch_of(spec, micro, 0)) && has_graph(spec, second) &&
                        has_one_call(spec, second.skips - 1) &&
                        !is_read_past(spec, second.skips - 1);
  return is_right ? "" : "a branch that has nothing for itself";
}

std::string drop_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.drops_on < 0 || micro.drops_on > spec.ranks) return "a rank that is not there";
  if (micro.drops_on == 0) return {};
  const bool is_right =
      static_cast<Outstanding>(micro.outstanding) == Outstanding::in_order && spec.engines == 1 &&
      spec.is_tiled + spec.skips_frames == 0 &&
      micro.keeps + micro.creates + micro.wrapped + micro.interrupt + micro.looks == 0 &&
      micro.clears < 3;
  return is_right ? "" : "no graph that one rank could drop";
}

}  // namespace

Additions order_additions() {
  static constexpr Addition kOrders[] = {{5, drop_on_one_rank},
                                         {5, take_branches},
                                         {5, bound_reuse},
                                         {5, bound_prefetch},
                                         {8, run_in_other_orders}};
  return {kOrderStream, 4, kOrders};
}

std::string order_problem(const CaseSpec& spec) {
  if (spec.reorders < 0 || spec.reorders > spec.ranks) return "a rank that is not there";
  if (spec.reorders != 0 && (spec.ranks < 2 || spec.stage != 3 || spec.engines > 1 ||
                             spec.granularity + spec.skips_frames + spec.container != 0))
    return "no order that ranks could compare";
  for (const MicroSpec& micro : spec.micros)
    for (const std::string& problem : {branch_problem(spec, micro), drop_problem(spec, micro)})
      if (!problem.empty()) return problem;
  return {};
}

// Three forwards alike are followed at last, whatever came before; then one leaves that order, so
// that the next is recorded, and the last begins with the comparison.
std::vector<std::vector<std::size_t>> orders_of_asides(const CaseSpec& spec, int rank) {
  const std::vector<std::size_t> known = {0, 1};
  const std::vector<std::size_t> other = {1, 0};
  return {known, known, known, {1}, rank + 1 == spec.reorders ? other : known, known};
}

bool refuses_order(const CaseSpec& spec, int rank) {
  return rank != 0 && (spec.reorders == 1 || spec.reorders == rank + 1);
}

MicroSpec branch_of(const CaseSpec& spec, const MicroSpec& micro, int which) {
  MicroSpec branch = micro;
  branch.skips =
      which == 0 ? micro.branches : micro.branches % static_cast<int>(spec.calls.size()) + 1;
  return branch;
}

}  // namespace zeroproof::train
