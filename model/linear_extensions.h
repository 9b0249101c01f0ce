#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/order_count.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// A set of elements 0 ... 63 of a partial order: bit i stands for element i.
using ElementSet = std::uint64_t;

// A partial order of at most 64 elements, given by what must come before what. The relation need
// not be transitively closed. Immutable and free of cycles.
class Poset {
 public:
  static constexpr std::size_t kMaxElements = 64;

  // `predecessors[i]`: what must come before i. Error (usage) for more than 64 elements, a bit
  // without an element, a cycle.
  static Result<Poset> make(std::vector<ElementSet> predecessors);

  std::size_t size() const { return predecessors_.size(); }
  ElementSet all() const;

  // Elements outside `done` whose predecessors are all in it.
  ElementSet minimal_after(ElementSet done) const;

 private:
  explicit Poset(std::vector<ElementSet> predecessors) : predecessors_(std::move(predecessors)) {}

  std::vector<ElementSet> predecessors_;
};

// The number of linear extensions, or with `stops` (elements that end the run, as a node that
// raises does) the number of different sequences up to and including the first stop. Counted over
// down-sets, layer by layer, without enumerating an order.
// Error (usage) when a layer has more than `kMaxDownSets` down-sets.
inline constexpr std::size_t kMaxDownSets = std::size_t{1} << 20;
Result<OrderCount> count_orders(const Poset& poset, ElementSet stops = 0);

// Valid during the call; false ends the enumeration.
using OrderVisitor = std::function<bool(std::span<const std::uint8_t> order)>;

// Visits what `count_orders` counts, in lexicographic order. Returns whether it visited all.
bool for_each_order(const Poset& poset, ElementSet stops, const OrderVisitor& visitor);

inline bool for_each_linear_extension(const Poset& poset, const OrderVisitor& visitor) {
  return for_each_order(poset, 0, visitor);
}

// The smallest element; the set must not be empty.
inline std::uint8_t first_element(ElementSet set) {
  return static_cast<std::uint8_t>(std::countr_zero(set));
}

inline ElementSet set_of(std::size_t element) {
  return ElementSet{1} << element;
}

}  // namespace zeroproof
