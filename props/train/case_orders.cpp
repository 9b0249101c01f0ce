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

// --- what can be ------------------------------------------------------------------------------

std::string drop_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.drops_on < 0 || micro.drops_on > spec.ranks) return "a rank that is not there";
  if (micro.drops_on == 0) return {};
  const bool is_right =
      static_cast<Outstanding>(micro.outstanding) == Outstanding::in_order && spec.engines == 1 &&
      spec.is_tiled + spec.skips_frames == 0 &&
      micro.keeps + micro.creates + micro.wrapped + micro.interrupt + micro.looks == 0 &&
      micro.clears != 3;
  return is_right ? "" : "no graph that one rank could drop";
}

}  // namespace

CaseSpec with_orders(const CaseSpec& spec, std::uint64_t seed) {
  constexpr Addition kOrders[] = {{5, drop_on_one_rank}, {8, run_in_other_orders}};
  Draws draws(seed ^ kOrderStream);
  return draws.one_in(4) ? with_each(spec, kOrders, draws) : spec;
}

std::string order_problem(const CaseSpec& spec) {
  if (spec.reorders < 0 || spec.reorders > spec.ranks) return "a rank that is not there";
  if (spec.reorders != 0 && (spec.ranks < 2 || spec.stage != 3 || spec.engines > 1 ||
                             spec.granularity + spec.skips_frames + spec.container != 0))
    return "no order that ranks could compare";
  for (const MicroSpec& micro : spec.micros)
    if (std::string problem = drop_problem(spec, micro); !problem.empty()) return problem;
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

}  // namespace zeroproof::train
