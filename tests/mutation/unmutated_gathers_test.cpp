// Cases in which the judges of stage 3's gathers once took what a unmutated engine does for wrong.
#include <gtest/gtest.h>

#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class UnmutatedGathers : public ::testing::TestWithParam<const char*> {};

TEST_P(UnmutatedGathers, Hold) {
  expect_unmutated(GetParam());
}

// One rank assembles from its part, which every gather reads.
INSTANTIATE_TEST_SUITE_P(Assembled, UnmutatedGathers,
                         ::testing::Values(R"({"stage":3,"layers":[{}],"calls":[{}],
                             "micros":[{},{}]})"));

// The host waits for the gathers of modules alone, not for those of a user or without hooks.
INSTANTIATE_TEST_SUITE_P(
    OfOthers, UnmutatedGathers,
    ::testing::Values(R"({"stage":3,"skips_frames":1,"layers":[{"has_bias":1},{}],
            "calls":[{},{"layer":1}],"micros":[{"repeats":1,"clears":1},{"repeats":1}]})",
                      R"({"stage":3,"accumulation":4,"layers":[{}],"calls":[{}],
            "micros":[{"looks":1},{"looks":1},{"has_bypass":2,"looks":1},
                      {"has_bypass":2,"looks":1}]})"));

// A user's context gave up what persists, and an operation of the backward gathers it for itself.
INSTANTIATE_TEST_SUITE_P(Persistent, UnmutatedGathers,
                         ::testing::Values(R"({"stage":3,"persistence":1,"layers":[{"outputs":1}],
            "calls":[{}],"micros":[{"has_bypass":2}]})"));

// What persists travels once more behind a user's context, and the root uses what it reads soon.
INSTANTIATE_TEST_SUITE_P(
    Distances, UnmutatedGathers,
    ::testing::Values(
        R"({"stage":3,"reuse":1,"reads":1,"layers":[{}],"calls":[{}],"micros":[{},{}]})",
        R"({"stage":3,"persistence":2,"prefetch":12,
            "layers":[{},{"inputs":2},{"inputs":3},{}],
            "calls":[{},{"layer":1},{"layer":2},{"layer":3}],"micros":[{},{"gathers":1}]})"));

// As much may be live as there is: what is gathered ahead is not passed over for its later use.
INSTANTIATE_TEST_SUITE_P(Room, UnmutatedGathers,
                         ::testing::Values(R"({"stage":3,"prefetch":40,"live":11,
            "layers":[{"inputs":3,"has_bias":1},{"outputs":1},{"inputs":2,"outputs":1}],
            "calls":[{},{"layer":1},{"layer":2}],"micros":[{},{}]})"));

// Weights that are NaN for a while, in contexts that check for changes.
INSTANTIATE_TEST_SUITE_P(
    NoNumbers, UnmutatedGathers,
    ::testing::Values(
        R"({"stage":3,"checks":1,"layers":[{}],"calls":[{}],"micros":[{"gathers":11},{}]})",
        R"({"ranks":2,"stage":3,"checks":1,"persistence":10,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{},{"gathers":11}]})"));

}  // namespace
}  // namespace zeroproof::mutation
