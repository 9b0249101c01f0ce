// Calls in which the device runs out of memory, under the unmutated engine: what failed has left
// nothing, and what is done again is as if it had come first.
#include <gtest/gtest.h>

#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class UnmutatedMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(UnmutatedMemory, Holds) {
  expect_unmutated(GetParam());
}

// A gather in a forward, for one rank and where it has travelled already; in a user's context; and
// where ranks compare what they have recorded.
INSTANTIATE_TEST_SUITE_P(
    Forwards, UnmutatedMemory,
    ::testing::Values(
        R"({"stage":3,"layers":[{}],"calls":[{}],"micros":[{"shortage":2,"shortage_at":2}]})",
        R"({"stage":3,"layers":[{}],"calls":[{}],
            "micros":[{"idle_forward":1,"shortage":1,"shortage_at":1}]})",
        R"({"ranks":2,"stage":3,"layers":[{"has_bias":1}],"calls":[{}],
            "micros":[{"shortage":2,"shortage_at":3}]})",
        R"({"stage":3,"prefetch":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{},{},{"shortage":2,"shortage_at":1}]})",
        R"({"stage":3,"layers":[{}],"calls":[{}],
            "micros":[{"gathers":1,"shortage":5,"shortage_at":1}]})",
        R"({"ranks":2,"stage":3,"precision":3,"layers":[{"is_raw":1},{}],"calls":[{},{"layer":1}],
            "micros":[{"gathers":10,"shortage":5,"shortage_at":1}]})",
        R"({"ranks":2,"stage":3,"precision":3,"layers":[{"is_raw":1},{}],"calls":[{},{"layer":1}],
            "micros":[{"gathers":10,"shortage":5,"shortage_at":3}]})",
        R"({"stage":3,"layers":[{}],"calls":[{}],
            "micros":[{"peeks":1,"shortage":6,"shortage_at":2}]})"));

// An epilogue that fails is not counted as a backward, gives back what its backward has gathered,
// and what of it was gathered ahead for nobody needs no room.
INSTANTIATE_TEST_SUITE_P(
    Epilogues, UnmutatedMemory,
    ::testing::Values(
        R"({"stage":2,"is_unmanaged":1,"layers":[{}],"calls":[{}],
            "micros":[{"shortage":4,"shortage_at":1}]})",
        R"({"stage":3,"layers":[{}],"calls":[{}],"micros":[{"shortage":4,"shortage_at":1}]})",
        R"({"ranks":2,"stage":3,"layers":[{}],"calls":[{}],
            "micros":[{"shortage":3,"shortage_at":3}]})",
        R"({"stage":3,"prefetch":40,"layers":[{}],"calls":[{}],
            "micros":[{},{"shortage":3,"shortage_at":1}]})"));

// Local sums of stages 0 and 1: all of a backward's gradients are in them, or none.
INSTANTIATE_TEST_SUITE_P(
    Sums, UnmutatedMemory,
    ::testing::Values(
        R"({"precision":1,"accumulates_float32":1,"accumulation":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"shortage":4,"shortage_at":2},{}]})",
        R"({"stage":1,"precision":1,"accumulates_float32":1,"accumulation":4,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"shortage":4,"shortage_at":2},{},{},{}]})"));

// A forward that has no room in the middle of a fetch: its module ends, and was never whole.
INSTANTIATE_TEST_SUITE_P(
    Fetches, UnmutatedMemory,
    ::testing::Values(
        R"({"stage":3,"prefetch":40,"layers":[{"is_raw":1},{}],"calls":[{},{"layer":1}],
            "micros":[{},{"aborts":1,"skips":1,"clears":1},
            {"idle_forward":1,"shortage":1,"shortage_at":1}]})"));

}  // namespace
}  // namespace zeroproof::mutation
