#include "model/linear_extensions.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

namespace zeroproof {
namespace {

// How many sequences lead to each down-set of one size. Iterated in no fixed order: sums commute,
// also where they overflow.
using Layer = std::unordered_map<ElementSet, OrderCount>;

tl::unexpected<Error> too_large(const Poset& poset) {
  return fail(ErrorCode::usage,
              fmt::format("a partial order of {} elements has more than {} down-sets of one size: "
                          "too many to count, make the scenario smaller",
                          poset.size(), kMaxDownSets));
}

// One position of a backtracking enumeration: what may still be tried there.
struct Branch {
  ElementSet done;
  ElementSet untried;
};

}  // namespace

Result<Poset> Poset::make(std::vector<ElementSet> predecessors) {
  if (predecessors.size() > kMaxElements)
    return fail(ErrorCode::usage,
                fmt::format("a partial order of {} elements: orders are counted up to {}",
                            predecessors.size(), kMaxElements));
  Poset poset(std::move(predecessors));
  for (std::size_t i = 0; i < poset.size(); ++i)
    if ((poset.predecessors_[i] & ~poset.all()) != 0)
      return fail(ErrorCode::usage,
                  fmt::format("element {} of a partial order has a predecessor outside its {} "
                              "elements: correct the order",
                              i, poset.size()));
  ElementSet done = 0;
  while (const ElementSet ready = poset.minimal_after(done)) done |= ready;
  if (done == poset.all()) return poset;
  return fail(ErrorCode::usage,
              fmt::format("element {} of a partial order lies on or after a cycle: correct the "
                          "order",
                          first_element(poset.all() & ~done)));
}

ElementSet Poset::all() const {
  return size() == kMaxElements ? ~ElementSet{0} : set_of(size()) - 1;
}

ElementSet Poset::minimal_after(ElementSet done) const {
  ElementSet minimal = 0;
  for (ElementSet rest = all() & ~done; rest != 0; rest &= rest - 1) {
    const std::uint8_t element = first_element(rest);
    if ((predecessors_[element] & ~done) == 0) minimal |= set_of(element);
  }
  return minimal;
}

Result<OrderCount> count_orders(const Poset& poset, ElementSet stops) {
  Layer layer{{0, OrderCount(1)}};
  OrderCount ended;
  while (!layer.empty()) {
    Layer following;
    for (const auto& [done, ways] : layer) {
      if (done == poset.all()) ended += ways;
      for (ElementSet ready = poset.minimal_after(done); ready != 0; ready &= ready - 1) {
        const ElementSet chosen = set_of(first_element(ready));
        OrderCount& total = (chosen & stops) != 0 ? ended : following[done | chosen];
        total += ways;
      }
      if (following.size() > kMaxDownSets) return too_large(poset);
    }
    layer.swap(following);
  }
  return ended;
}

bool for_each_order(const Poset& poset, ElementSet stops, const OrderVisitor& visitor) {
  if (poset.size() == 0) return visitor({});
  std::vector<Branch> branches{{0, poset.minimal_after(0)}};
  std::vector<std::uint8_t> order;
  while (!branches.empty()) {
    Branch& here = branches.back();
    order.resize(branches.size() - 1);
    if (here.untried == 0) {
      branches.pop_back();
      continue;
    }
    const std::uint8_t element = first_element(here.untried);
    here.untried &= here.untried - 1;
    order.push_back(element);
    const ElementSet done = here.done | set_of(element);
    if (done != poset.all() && (stops & set_of(element)) == 0)
      branches.push_back({done, poset.minimal_after(done)});
    else if (!visitor(order))
      return false;
  }
  return true;
}

}  // namespace zeroproof
