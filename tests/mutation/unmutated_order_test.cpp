// What stage 3 does by the order of modules, under the unmutated engine.
#include <gtest/gtest.h>

#include "props/train/case_orders.h"
#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class UnmutatedOrder : public ::testing::TestWithParam<const char*> {};

TEST_P(UnmutatedOrder, Holds) {
  expect_unmutated(GetParam());
}

// One rank runs its modules in another order than the others: the first or a later one, behind an
// order that is known, recorded or given up.
INSTANTIATE_TEST_SUITE_P(
    Disorder, UnmutatedOrder,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"reorders":1,"layers":[{}],"calls":[{}],"micros":[{},{},{}]})",
        R"({"ranks":3,"stage":3,"reorders":2,"preempts":1,"layers":[{}],"calls":[{}],
            "micros":[{},{}]})",
        R"({"ranks":3,"stage":3,"reorders":3,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{},{},{"idle_forward":1,"skips":1}]})"));

// A graph that was kept, and that one rank gives up.
INSTANTIATE_TEST_SUITE_P(
    DroppedAlone, UnmutatedOrder,
    ::testing::Values(R"({"ranks":2,"stage":3,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"outstanding":1,"drops_on":1},{"outstanding":1,"drops_on":2}]})",
                      R"({"ranks":3,"stage":3,"prefetch":4,"accumulation":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"outstanding":1,"drops_on":2},{}]})",
                      R"({"ranks":2,"stage":1,"layers":[{}],"calls":[{}],
            "micros":[{"outstanding":1,"drops_on":2}]})"));

// Two branches of skipped frames, whose graphs live side by side.
INSTANTIATE_TEST_SUITE_P(
    Branches, UnmutatedOrder,
    ::testing::Values(R"({"ranks":2,"stage":3,"skips_frames":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"outstanding":1,"branches":1},{}]})",
                      R"({"ranks":2,"stage":3,"skips_frames":1,"layers":[{},{},{"has_bias":1}],
            "calls":[{},{"layer":1},{"layer":2}],
            "micros":[{"outstanding":1,"branches":3,"repeats":1}]})"));

// Distances of reuse where slices are smaller than parameters, and what is gathered ahead past
// parameters that are whole already.
INSTANTIATE_TEST_SUITE_P(
    Bounds, UnmutatedOrder,
    ::testing::Values(R"({"ranks":2,"stage":3,"reuse":5,"layers":[{},{"inputs":2}],
            "calls":[{},{"layer":1}],"micros":[{},{},{}]})",
                      R"({"ranks":3,"stage":3,"reuse":12,"layers":[{"inputs":3,"outputs":3},
            {"inputs":3,"outputs":3},{"inputs":2}],
            "calls":[{},{"layer":1},{"layer":2}],"micros":[{},{},{}]})",
                      R"({"ranks":2,"stage":3,"prefetch":6,"persistence":6,
            "layers":[{"inputs":3,"outputs":3},{"outputs":3},{"inputs":3,"outputs":3}],
            "calls":[{},{"layer":1},{"layer":2}],"micros":[{},{},{}]})"));

// The same, with an engine that does it wrong.
struct Shown {
  const char* id;
  const char* property;
  const char* json;
};

class FaultOfOrder : public ::testing::TestWithParam<Shown> {};

TEST_P(FaultOfOrder, Is_shown) {
  const auto spec = train::parse_case(GetParam().json, "test");
  ASSERT_TRUE(spec.has_value()) << spec.error().text;
  const Fault* const fault = find_fault(GetParam().id);
  ASSERT_TRUE(fault);
  bool is_shown = false;
  for (const bool is_of_events : {false, true})
    is_shown = is_shown || replay({*spec, is_of_events, {}}, fault).find(GetParam().property);
  EXPECT_TRUE(is_shown);
}

INSTANTIATE_TEST_SUITE_P(
    Each, FaultOfOrder,
    ::testing::Values(Shown{"Z76", "R14", R"({"ranks":2,"stage":3,"reorders":2,"layers":[{}],
            "calls":[{}],"micros":[{}]})"},
                      Shown{"Z76", "R14", R"({"ranks":3,"stage":3,"reorders":1,"layers":[{}],
            "calls":[{}],"micros":[{},{},{}]})"},
                      Shown{"Z72", "R3", R"({"ranks":2,"stage":3,"layers":[{}],"calls":[{}],
            "micros":[{"outstanding":1,"drops_on":2}]})"},
                      Shown{"Z71", "R12", R"({"ranks":2,"stage":3,"skips_frames":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"outstanding":1,"branches":1}]})"},
                      Shown{"Z75", "R12",
                            R"({"ranks":2,"stage":3,"reuse":5,"layers":[{},{"inputs":2}],
            "calls":[{},{"layer":1}],"micros":[{},{},{}]})"},
                      Shown{"Y08", "R10", R"({"ranks":2,"stage":3,"prefetch":6,"persistence":6,
            "layers":[{"inputs":3,"outputs":3},{"outputs":3},{"inputs":3,"outputs":3},
            {"outputs":3},{"inputs":3,"outputs":3}],
            "calls":[{},{"layer":1},{"layer":2},{"layer":3},{"layer":4}],
            "micros":[{},{},{}]})"}));

TEST(CaseOrders, Ranks_that_differ_from_the_first_refuse_their_order) {
  train::CaseSpec spec;
  spec.reorders = 2;
  EXPECT_FALSE(train::refuses_order(spec, 0));
  EXPECT_TRUE(train::refuses_order(spec, 1));
  EXPECT_FALSE(train::refuses_order(spec, 2));
  spec.reorders = 1;
  EXPECT_FALSE(train::refuses_order(spec, 0));
  EXPECT_TRUE(train::refuses_order(spec, 2));
}

TEST(CaseOrders, Orders_differ_in_the_forward_that_is_recorded) {
  train::CaseSpec spec;
  spec.reorders = 2;
  const auto first = train::orders_of_asides(spec, 0);
  const auto second = train::orders_of_asides(spec, 1);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i] == second[i], i + 2 != first.size()) << i;
}

}  // namespace
}  // namespace zeroproof::mutation
