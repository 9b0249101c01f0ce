#include "props/train/case_orders.h"

#include <algorithm>

#include "props/train/case_additions.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kOrderStream = 0x6f7264657273ULL;

void run_in_other_orders(CaseSpec& spec, Draws& draws) {
  spec.ranks = std::max(spec.ranks, 2);
  spec.stage = 3;
  spec.engines = 1;
  spec.granularity = spec.skips_frames = spec.container = 0;
  spec.reorders = draws.between(1, spec.ranks);
}

}  // namespace

CaseSpec with_orders(const CaseSpec& spec, std::uint64_t seed) {
  constexpr Addition kOrders[] = {{8, run_in_other_orders}};
  Draws draws(seed ^ kOrderStream);
  return draws.one_in(4) ? with_each(spec, kOrders, draws) : spec;
}

std::string order_problem(const CaseSpec& spec) {
  if (spec.reorders < 0 || spec.reorders > spec.ranks) return "a rank that is not there";
  if (spec.reorders != 0 && (spec.ranks < 2 || spec.stage != 3 || spec.engines > 1 ||
                             spec.granularity + spec.skips_frames + spec.container != 0))
    return "no order that ranks could compare";
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
