// Cases of what modules and linear functions get, and of a user's own contexts: the engine holds.
#include <gtest/gtest.h>

#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class UnmutatedInput : public ::testing::TestWithParam<const char*> {};

TEST_P(UnmutatedInput, Holds) {
  expect_unmutated(GetParam());
}

// The gradients for what linear functions get, which need the weights' values.
INSTANTIATE_TEST_SUITE_P(
    Watched, UnmutatedInput,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"input_grad":1,"layers":[{"is_linked":1,"is_watched":1},
            {"inputs":3,"outputs":3,"is_raw":1,"is_watched":1}],"calls":[{},{"layer":1},{}],
            "micros":[{},{}]})",
        R"({"ranks":2,"stage":3,"precision":3,"input_grad":1,"layers":[{"is_linked":1,
            "is_watched":1},{"is_raw":1,"is_watched":1}],"calls":[{},{"layer":1}],"micros":[{}]})",
        R"({"ranks":2,"stage":3,"input_grad":1,"reads":1,"watches":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"has_bypass":2},{}]})",
        R"({"ranks":2,"stage":3,"input_grad":1,"reads":2,"holds":1,"watches":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":3,"input_grad":1,"returns":1,"watches":1,
            "layers":[{"is_raw":1},{}],"calls":[{},{"layer":1}],"micros":[{},{}]})"));

// Modules that get more than one input, and linear functions of one dimension or three.
INSTANTIATE_TEST_SUITE_P(
    Inputs, UnmutatedInput,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"input_grad":1,"layers":[{"is_linked":1,"has_two_inputs":1},
            {"is_raw":1,"has_two_inputs":2}],"calls":[{},{"layer":1}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":3,"layers":[{"has_bias":1,"is_linked":1,"dimensions":1},
            {"has_bias":1,"is_linked":1,"dimensions":3}],"calls":[{},{"layer":1}],
            "micros":[{},{}]})"));

// Forwards and changes in contexts that gather the weights, and one that outdates a graph.
INSTANTIATE_TEST_SUITE_P(
    Contexts, UnmutatedInput,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"gathers":8},{"gathers":9}]})",
        R"({"ranks":2,"stage":3,"skips_frames":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"gathers":2,"idle_forward":1,"idles_first":1},{"gathers":9}]})",
        R"({"stage":3,"prefetch":40,"layers":[{}],"calls":[{}],
            "micros":[{},{"idle_forward":1,"gathers":1,"idles_first":1}]})",
        R"({"ranks":2,"stage":3,"precision":2,"reads":1,"watches":1,"layers":[{},{"is_raw":1,
            "is_watched":1}],"calls":[{},{"layer":1}],
            "micros":[{"interrupt":11,"interrupt_at":1},{}]})",
        R"({"ranks":2,"stage":3,"precision":3,"layers":[{"has_bias":1},{"is_raw":1}],
            "calls":[{},{"layer":1}],"micros":[{"gathers":10},{"gathers":10}]})",
        R"({"stage":3,"precision":3,"has_grad_scaler":1,"layers":[{}],"calls":[{}],
            "micros":[{"gathers":10}]})",
        R"({"ranks":2,"stage":3,"precision":2,"accumulation":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"outdates":1},{},{},{"outdates":1}]})"));

// Gradients of examples, and of a batch of them.
INSTANTIATE_TEST_SUITE_P(
    Examples, UnmutatedInput,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"input_grad":1,"layers":[{"is_linked":1,"has_bias":1,
            "dimensions":3},{"is_raw":1,"has_two_inputs":1}],"calls":[{},{"layer":1}],
            "micros":[{"idle_forward":4},{"idle_forward":4}]})"));

// One rank alone does not read what another module's forward has registered.
INSTANTIATE_TEST_SUITE_P(
    ReadApart, UnmutatedInput,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"input_grad":1,"reads":2,"registers":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"unread":1,"unread_on":1},
            {"unread":1,"unread_on":2},{}]})"));

// Sums of a window that need more bits than bf16 has.
INSTANTIATE_TEST_SUITE_P(
    Width, UnmutatedInput,
    ::testing::Values(
        R"({"ranks":4,"stage":2,"precision":1,"accumulation":4,"is_wire_float32":1,
            "accumulates_float32":1,"is_wide":1,"layers":[{}],"calls":[{}],
            "micros":[{},{},{},{}]})",
        R"({"ranks":4,"stage":3,"precision":1,"accumulation":4,"is_wire_float32":1,
            "accumulates_float32":1,"is_wide":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{},{},{},{}]})"));

}  // namespace
}  // namespace zeroproof::mutation
