#include "model/linear_extensions.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tests/model/pick.h"

namespace zeroproof {
namespace {

using testing::pick;
using Order = std::vector<std::uint8_t>;

Poset poset(std::vector<ElementSet> predecessors) {
  return Poset::make(std::move(predecessors)).value();
}

OrderCount count(const std::vector<ElementSet>& predecessors, ElementSet stops = 0) {
  return count_orders(poset(predecessors), stops).value();
}

std::vector<ElementSet> chains(const std::vector<std::size_t>& lengths) {
  std::vector<ElementSet> out;
  for (const std::size_t length : lengths)
    for (std::size_t i = 0; i < length; ++i) out.push_back(i == 0 ? 0 : set_of(out.size() - 1));
  return out;
}

// Bit j of masks[i] for j < i only, then relabelled, so that it is acyclic but not in order.
std::vector<ElementSet> random_order(std::size_t most_elements) {
  const auto count = pick<std::size_t>(0, most_elements + 1);
  std::vector<std::size_t> labels(count);
  std::iota(labels.begin(), labels.end(), 0);
  for (std::size_t i = 1; i < count; ++i) std::swap(labels[i], labels[pick<std::size_t>(0, i + 1)]);
  std::vector<ElementSet> out(count);
  for (std::size_t i = 1; i < count; ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (pick(0, 3) == 0) out[labels[i]] |= set_of(labels[j]);
  return out;
}

// Every permutation, cut after the first stop, if no element comes before a predecessor.
std::set<Order> brute_force(const std::vector<ElementSet>& predecessors, ElementSet stops) {
  Order permutation(predecessors.size());
  std::iota(permutation.begin(), permutation.end(), std::uint8_t{0});
  std::set<Order> out;
  do {
    ElementSet done = 0;
    bool is_legal = true;
    for (const std::uint8_t element : permutation) {
      is_legal = is_legal && (predecessors[element] & ~done) == 0;
      done |= set_of(element);
    }
    if (!is_legal) continue;
    auto end = std::find_if(permutation.begin(), permutation.end(),
                            [&](std::uint8_t element) { return (stops & set_of(element)) != 0; });
    if (end != permutation.end()) ++end;
    out.insert(Order(permutation.begin(), end));
  } while (std::next_permutation(permutation.begin(), permutation.end()));
  return out;
}

RC_GTEST_PROP(LinearExtensions, Agree_with_brute_force_counted_and_enumerated, ()) {
  const auto predecessors = random_order(6);
  const ElementSet stops = *rc::gen::arbitrary<bool>() ? pick<ElementSet>(0, 64) : 0;
  const std::set<Order> expected = brute_force(predecessors, stops);
  RC_ASSERT(count(predecessors, stops) == expected.size());
  std::vector<Order> visited;
  for_each_order(poset(predecessors), stops, [&](std::span<const std::uint8_t> order) {
    visited.emplace_back(order.begin(), order.end());
    return true;
  });
  // std::set is in lexicographic order: the same orders, each once, in the promised order.
  RC_ASSERT(visited == std::vector<Order>(expected.begin(), expected.end()));
}

TEST(LinearExtensions, Follow_the_known_formulas) {
  EXPECT_EQ(count({}), 1U);
  EXPECT_EQ(count(std::vector<ElementSet>(8)), 40320U);      // antichain: n!
  EXPECT_EQ(count(chains({64})), 1U);                        // chain
  EXPECT_EQ(count(chains({10, 10})), 184756U);               // binomial(20, 10)
  EXPECT_EQ(count(chains({32, 32})), 1832624140942590534U);  // binomial(64, 32)
  EXPECT_EQ(count(chains({3, 3, 3})), 1680U);                // 9! / 3!^3
}

// A spine s0 < s1 < ... with one leaf after each element: (2n - 1)!! orders.
TEST(LinearExtensions, Of_a_comb_are_a_double_factorial) {
  std::uint64_t expected = 1;
  std::vector<ElementSet> comb;
  for (std::size_t teeth = 1; teeth <= 9; ++teeth) {
    comb.push_back(teeth == 1 ? 0 : set_of(2 * teeth - 4));
    comb.push_back(set_of(2 * teeth - 2));
    expected *= 2 * teeth - 1;
    EXPECT_EQ(count(comb), expected);
  }
}

// A grid of 2 rows: standard Young tableaux, the Catalan numbers.
TEST(LinearExtensions, Of_a_two_row_grid_are_catalan_numbers) {
  std::uint64_t catalan = 1;
  for (std::size_t columns = 1; columns <= 30; ++columns) {
    catalan = catalan * 2 * (2 * columns - 1) / (columns + 1);
    auto grid = chains({columns, columns});
    for (std::size_t i = 0; i < columns; ++i) grid[columns + i] |= set_of(i);
    EXPECT_EQ(count(grid), catalan);
  }
}

TEST(LinearExtensions, End_at_the_first_stop) {
  EXPECT_EQ(count(std::vector<ElementSet>(3), set_of(0)), 5U);      // 0 10 20 120 210
  EXPECT_EQ(count(std::vector<ElementSet>(3), ElementSet{7}), 3U);  // any first element
  EXPECT_EQ(count(chains({5}), set_of(2)), 1U);
}

TEST(LinearExtensions, Overflow_and_say_so) {
  EXPECT_FALSE(count(chains({16, 16, 16, 16})).has_overflowed());
  EXPECT_TRUE(count(chains({13, 13, 13, 13, 12})).has_overflowed());
}

TEST(LinearExtensions, Stop_when_the_visitor_says_so) {
  int visits = 0;
  EXPECT_FALSE(for_each_linear_extension(poset(std::vector<ElementSet>(5)),
                                         [&](auto) { return ++visits < 7; }));
  EXPECT_EQ(visits, 7);
  EXPECT_TRUE(for_each_linear_extension(poset(chains({64})), [](auto) { return true; }));
}

TEST(LinearExtensions, Refuse_what_is_no_partial_order_or_too_large) {
  EXPECT_EQ(Poset::make({set_of(1), set_of(0)}).error().text,
            "element 0 of a partial order lies on or after a cycle: correct the order");
  EXPECT_EQ(Poset::make({set_of(3)}).error().text,
            "element 0 of a partial order has a predecessor outside its 1 elements: correct the "
            "order");
  EXPECT_NE(Poset::make(std::vector<ElementSet>(65)).error().text.find("65"), std::string::npos);
  EXPECT_NE(count_orders(poset(std::vector<ElementSet>(40))).error().text.find("down-sets"),
            std::string::npos);
}

}  // namespace
}  // namespace zeroproof
