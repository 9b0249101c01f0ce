// Programs whose world changes its size, and calls in odd places: no judge has anything against the
// unmutated engine.
#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class PlaceCase : public ::testing::TestWithParam<const char*> {};

TEST_P(PlaceCase, Holds) {
  expect_unmutated(GetParam());
}

// A checkpoint of other ranks: more, fewer, an odd number; a loss scale that has moved by then.
INSTANTIATE_TEST_SUITE_P(
    Worlds, PlaceCase,
    ::testing::Values(
        R"({"ranks":2,"first_ranks":1,"stage":1,"layers":[{}],"calls":[{}],"micros":[{},{}]})",
        R"({"first_ranks":2,"stage":3,"layers":[{"has_bias":1}],"calls":[{}],"micros":[{},{}]})",
        R"({"ranks":2,"first_ranks":4,"layers":[{}],"calls":[{}],
            "micros":[{},{"restores":1},{}]})",
        R"({"ranks":4,"first_ranks":3,"stage":2,"precision":2,"is_dynamic":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"overflow":1},{},{}]})"));

// Saves, loads, zero_grad and questions in contexts, forwards and blocks.
INSTANTIATE_TEST_SUITE_P(
    Detours, PlaceCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"accumulation":4,"checks":1,"layers":[{}],"calls":[{}],
            "micros":[{"detour":1},{"detour":2},{"detour":3},{"detour":4}]})",
        R"({"ranks":2,"stage":3,"accumulation":4,"layers":[{"is_frozen":1},{}],
            "calls":[{},{"layer":1}],"micros":[{"detour":1,"detour_at":2},
            {"detour":3,"detour_at":2},{"detour":4,"detour_at":3},{"detour":1,"detour_at":3}]})",
        R"({"ranks":2,"stage":2,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"block":1,"detour":1,"detour_at":1},
            {"block":1,"detour":2,"detour_at":1}]})"));

// A leaf module without a gradient to wait for, a weight that is moved away, a leaf class that the
// model has not: nothing of it stays.
INSTANTIATE_TEST_SUITE_P(
    Misuses, PlaceCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"experts":1,"input_grad":1,"layers":[{}],"calls":[{}],
            "micros":[{"misuse":10},{}]})",
        R"({"ranks":2,"stage":3,"layers":[{}],"calls":[{}],"micros":[{"misuse":11},{}]})",
        R"({"stage":3,"refuses":23,"layers":[{}],"calls":[{}],"micros":[{},{}]})"));

// Tiles have left a gradient by then, in stage 0 too; casts that autocast has made are given back.
INSTANTIATE_TEST_SUITE_P(
    Scales, PlaceCase,
    ::testing::Values(
        R"({"ranks":2,"precision":2,"is_tiled":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"rescales":3},{"rescales":3}]})",
        R"({"stage":2,"precision":2,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{},{"rescales":3}]})",
        R"({"ranks":2,"stage":3,"precision":3,"plain_linear":1,"layers":[{}],"calls":[{}],
            "micros":[{}]})"));

// Of replicas one alone overflows, and none steps, in stage 0 either; what they tell each other is
// no gradient.
INSTANTIATE_TEST_SUITE_P(
    Replicas, PlaceCase,
    ::testing::Values(
        R"({"precision":2,"tensor":2,"layers":[{}],"calls":[{}],"micros":[{"overflow":1}]})",
        R"({"precision":3,"has_grad_scaler":1,"tensor":2,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1}]})",
        R"({"precision":1,"tensor":2,"layers":[{"inputs":3},{},{"inputs":3,"outputs":3}],
            "calls":[{}],"micros":[{}]})",
        R"({"ranks":2,"stage":1,"precision":1,"sequence":2,"layers":[{}],"calls":[{}],
            "micros":[{}]})",
        R"({"ranks":2,"tensor":2,"stage":3,"precision":2,"clip":1,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1,"overflow_rank":3},{}]})"));

// A hook of a weight throws in the middle of its layer's backward, of a graph that is kept or not;
// where no backward comes to it, none throws, and what is kept is kept.
INSTANTIATE_TEST_SUITE_P(
    FailingWeights, PlaceCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"aborts":1,"aborts_at_weight":1,"keeps":1}]})",
        R"({"stage":2,"accumulation":2,"layers":[{}],"calls":[{},{}],
            "micros":[{},{"aborts":2,"aborts_at_weight":1,"is_uncleared":1}]})",
        R"({"stage":3,"layers":[{}],"calls":[{},{}],
            "micros":[{"aborts":1,"skips":1,"keeps":1}]})",
        R"({"stage":3,"layers":[{}],"calls":[{"wrap":1},{}],"micros":[{"aborts":1,"keeps":1}]})"));

}  // namespace
}  // namespace zeroproof::mutation
