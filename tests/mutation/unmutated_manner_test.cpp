// What users do at the edge of what an engine knows, and what comes together seldom, under the
// unmutated engine.
#include <gtest/gtest.h>

#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class UnmutatedManner : public ::testing::TestWithParam<const char*> {};

TEST_P(UnmutatedManner, Holds) {
  expect_unmutated(GetParam());
}

// A context around a backward whose forward came before a transform; calls inside contexts behind
// a backward that failed.
INSTANTIATE_TEST_SUITE_P(
    Contexts, UnmutatedManner,
    ::testing::Values(R"({"stage":3,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"outstanding":5},{"idle_forward":3,"spans":1}]})",
                      R"({"stage":3,"accumulation":2,"is_unmanaged":1,"layers":[{}],"calls":[{}],
            "micros":[{"interrupt":7,"interrupt_at":1},{"detour":3}]})",
                      R"({"ranks":2,"stage":3,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"spans":2},{"spans":1}]})"));

// A step of an engine that no forward has come to, under a loss scale that moves.
INSTANTIATE_TEST_SUITE_P(
    LossScale, UnmutatedManner,
    ::testing::Values(R"({"stage":1,"precision":2,"engines":2,"is_dynamic":1,"takes_turns":1,
            "layers":[{}],"calls":[{}],"micros":[{"block":3},{}]})",
                      R"({"stage":1,"precision":1,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1},{"overflow":1}]})",
                      R"({"ranks":2,"precision":2,"is_dynamic":1,"owns_scale":3,"layers":[{}],
            "calls":[{}],"micros":[{},{"overflow":1},{}]})"));

// A persistent weight that the user has moved is on its way when the order turns out wrong.
INSTANTIATE_TEST_SUITE_P(
    Orders, UnmutatedManner,
    ::testing::Values(R"({"stage":3,"accumulation":2,"persistence":1,"prefetch":40,"reads":1,
            "layers":[{"outputs":1}],"calls":[{}],"micros":[{"misuse":11,"unread":1},{}]})"));

// no_sync around the first of two rounds; parameters in no group, in a checkpoint, too; engines
// that come and go.
INSTANTIATE_TEST_SUITE_P(Seldom, UnmutatedManner,
                         ::testing::Values(R"({"ranks":2,"layers":[{}],"calls":[{}],
            "micros":[{"repeats":1,"block":4}]})",
                                           R"({"stage":3,"input_grad":1,
            "layers":[{"is_linked":1},{"is_frozen":2}],"calls":[{},{"layer":1,"wrap":1}],
            "micros":[{}]})",
                                           R"({"ranks":2,"stage":2,"layers":[{"is_frozen":2},{}],
            "calls":[{},{"layer":1}],"micros":[{},{"guests":1}]})"));

// A backward that fails past the engine where no bucket is contiguous; no_sync with overlap;
// checkpoints under one scale; a window past the engine; a layer without outputs.
INSTANTIATE_TEST_SUITE_P(Settled, UnmutatedManner,
                         ::testing::Values(R"({"stage":1,"input_grad":1,"is_scattered":1,
            "layers":[{"has_bias":1}],"calls":[{}],"micros":[{"aborts":1,"has_bypass":1,
            "is_uncleared":1,"wrapped":1,"aborts_at_weight":1}]})",
                                           R"({"stage":1,"bucket":3,"has_overlap":1,"owns":1,
            "layers":[{}],"calls":[{}],"micros":[{"repeats":1,"block":4}]})",
                                           R"({"stage":1,"precision":3,"is_manual":1,
            "input_grad":1,"has_grad_scaler":1,"layers":[{}],"calls":[{}],
            "micros":[{"outstanding":3,"wrapped":1}]})",
                                           R"({"stage":1,"is_manual":1,"input_grad":1,
            "owns_scale":1,"layers":[{}],"calls":[{}],"micros":[{"outstanding":3,"wrapped":1}]})",
                                           R"({"stage":1,"is_manual":1,"accumulation":2,
            "has_overlap":1,"layers":[{}],"calls":[{}],
            "micros":[{"past_engine":3},{"past_engine":3}]})",
                                           R"({"stage":3,"is_manual":1,"layers":[{}],
            "calls":[{}],"micros":[{"idle_forward":3,"past_engine":3}]})",
                                           R"({"stage":3,
            "layers":[{"outputs":0,"dimensions":3},{}],"calls":[{},{"layer":1}],
            "micros":[{}]})"));

}  // namespace
}  // namespace zeroproof::mutation
