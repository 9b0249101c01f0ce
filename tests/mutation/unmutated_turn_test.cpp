// Forwards and backwards in other turns, under the unmutated engine.
#include <gtest/gtest.h>

#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class UnmutatedTurn : public ::testing::TestWithParam<const char*> {};

TEST_P(UnmutatedTurn, Holds) {
  expect_unmutated(GetParam());
}

// Frozen parameters in groups, a group of them alone, and a load of it.
INSTANTIATE_TEST_SUITE_P(
    Groups, UnmutatedTurn,
    ::testing::Values(
        R"({"ranks":2,"stage":2,"groups":2,"lists_frozen":1,"layers":[{"is_frozen":1},{}],
            "calls":[{},{"layer":1}],"micros":[{"restores":1},{}]})",
        R"({"ranks":2,"stage":3,"groups":3,"lists_frozen":1,"layers":[{},{"is_frozen":1}],
            "calls":[{},{"layer":1}],"micros":[{},{"restores":1}]})"));

// Two engines with losses of their own.
INSTANTIATE_TEST_SUITE_P(
    InTurns, UnmutatedTurn,
    ::testing::Values(
        R"({"ranks":2,"stage":2,"engines":2,"takes_turns":1,"accumulation":2,"input_grad":1,
            "layers":[{},{}],
            "calls":[{},{"layer":1,"wrap":1}],"micros":[{},{}]})",
        R"({"stage":3,"engines":2,"takes_turns":1,"precision":2,"layers":[{}],
            "calls":[{}],"micros":[{},{"interrupt":7,"interrupt_at":1}]})",
        R"({"ranks":2,"stage":1,"engines":2,"layers":[{}],
            "calls":[{}],"micros":[{"interrupt":10,"interrupt_at":1}]})"));

// A forward ahead of a step, and heads whose backwards interleave.
INSTANTIATE_TEST_SUITE_P(
    OtherOrder, UnmutatedTurn,
    ::testing::Values(R"({"ranks":2,"stage":1,"accumulation":2,"is_manual":1,"layers":[{}],
            "calls":[{}],"micros":[{"outstanding":5},{}]})",
                      R"({"ranks":2,"stage":3,"accumulation":2,"layers":[{}],
            "calls":[{}],"micros":[{"outstanding":5},{}]})",
                      R"({"ranks":2,"stage":3,"heads":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"outstanding":4},{}]})"));

// A backward fails inside a block, between two good ones; gradients are asked for in it.
INSTANTIATE_TEST_SUITE_P(
    InsideBlock, UnmutatedTurn,
    ::testing::Values(R"({"ranks":2,"stage":3,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"block":1,"repeats":1,"aborts_inside":1}]})",
                      R"({"ranks":2,"stage":1,"layers":[{}],
            "calls":[{}],"micros":[{"block":1,"asks":2}]})",
                      R"({"stage":2,"accumulation":2,"groups":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"asks":1},{"asks":1}]})"));

// Micro-batches past the engine, backwards inside its own, gradients that the user sets.
INSTANTIATE_TEST_SUITE_P(
    PastEngine, UnmutatedTurn,
    ::testing::Values(R"({"ranks":2,"stage":3,"accumulation":2,"is_manual":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],
            "micros":[{},{"past_engine":3},{"past_engine":3},{"idle_forward":1}]})",
                      R"({"ranks":2,"stage":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"interrupt":9,"interrupt_at":1}]})",
                      R"({"ranks":2,"layers":[{}],
            "calls":[{}],"micros":[{"litters":1},{}]})"));

// Another loss scale inside a backward, and behind one that came to nothing.
INSTANTIATE_TEST_SUITE_P(OtherScale, UnmutatedTurn,
                         ::testing::Values(R"({"ranks":2,"stage":2,"precision":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"interrupt":8,"interrupt_at":1}]})",
                                           R"({"ranks":2,"stage":2,"precision":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"aborts":1,"is_uncleared":1,"rescales":2},{}]})"));

// Backwards of the second engine that break inside one of the first, and then nothing of it comes.
INSTANTIATE_TEST_SUITE_P(
    Broken, UnmutatedTurn,
    ::testing::Values(R"({"stage":1,"precision":2,"engines":2,"takes_turns":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"block":3,"interrupt":13,"interrupt_at":1},
            {"interrupt":13,"interrupt_at":1}]})"));

// Windows to which nothing comes: before anything has run, before a load, in the middle.
INSTANTIATE_TEST_SUITE_P(Resting, UnmutatedTurn,
                         ::testing::Values(R"({"precision":2,"is_dynamic":1,"layers":[{}],
            "calls":[{}],"micros":[{"rests":1},{"restores":5}]})",
                                           R"({"stage":3,"layers":[{}],"calls":[{}],
            "micros":[{"rests":1}]})",
                                           R"({"ranks":2,"stage":2,"accumulation":2,"layers":[{}],
            "calls":[{}],"micros":[{},{"rests":1}]})"));

}  // namespace
}  // namespace zeroproof::mutation
