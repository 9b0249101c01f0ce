// Cases in which the unmutated engine once showed something that was wrong with it.
#include <gtest/gtest.h>

#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class UnmutatedCase : public ::testing::TestWithParam<const char*> {};

TEST_P(UnmutatedCase, Holds) {
  expect_unmutated(GetParam());
}

// A cast that autocast shares between uses is differentiated behind the release of the later one.
INSTANTIATE_TEST_SUITE_P(SharedCast, UnmutatedCase,
                         ::testing::Values(
                             R"({"stage":3,"precision":3,"is_tiled":1,"plain_linear":1,
            "layers":[{"inputs":2,"is_linked":1}],"calls":[{},{}],"micros":[{}]})",
                             R"({"ranks":2,"stage":3,"precision":3,"is_tiled":1,"plain_linear":1,
            "layers":[{"inputs":2,"is_linked":1}],"calls":[{},{}],"micros":[{}]})",
                             R"({"stage":3,"precision":3,"heads":2,"plain_linear":1,
            "layers":[{"inputs":2,"is_linked":1},{}],"calls":[{"layer":1},{},{}],
            "micros":[{"losses":2}]})"));

// What one call of a layer left in a kept graph is not for another call to reclaim.
INSTANTIATE_TEST_SUITE_P(
    KeptGraph, UnmutatedCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"heads":2,"layers":[{}],"calls":[{},{}],"micros":[{}]})",
        R"({"ranks":2,"stage":3,"heads":2,"reuse":1000,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":3,"accumulation":2,"is_unmanaged":1,"heads":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{},{"gathers":1}]})"));

// Uses past the order of forward and backward.
INSTANTIATE_TEST_SUITE_P(
    Order, UnmutatedCase,
    ::testing::Values(
        R"({"stage":3,"prefetch":40,"layers":[{"is_raw":1}],"calls":[{}],
            "micros":[{"idle_forward":1,"has_bypass":1}]})",
        R"({"stage":3,"prefetch":40,"layers":[{}],"calls":[{}],
            "micros":[{"has_bypass":1},{"idle_forward":1,"has_bypass":1}]})",
        R"({"stage":3,"prefetch":40,"layers":[{"is_raw":1}],"calls":[{}],
            "micros":[{},{"idle_forward":3}]})",
        R"({"stage":3,"input_grad":1,"persistence":2,"prefetch":1,"layers":[{}],"calls":[{}],
            "micros":[{},{"skips":1,"gathers":1}]})"));

// A weight is read past its layer, where that is below a leaf module.
INSTANTIATE_TEST_SUITE_P(BelowLeaf, UnmutatedCase,
                         ::testing::Values(R"({"stage":3,"input_grad":1,"reads":1,"granularity":2,
            "layers":[{"has_bias":1,"is_linked":1,"is_weight_frozen":1}],"calls":[{}],
            "micros":[{}]})"));

// A module begins to use a parameter that a recorded order does not have for it.
INSTANTIATE_TEST_SUITE_P(LateExternal, UnmutatedCase,
                         ::testing::Values(R"({"stage":3,"input_grad":1,"experts":1,"returns":1,
            "layers":[{"is_raw":1}],"calls":[{}],"micros":[{"outstanding":1,"throws":1}]})",
                                           R"({"stage":3,"input_grad":1,"prefetch":13,"experts":1,
            "reads":1,"layers":[{"inputs":2,"is_linked":1}],"calls":[{}],
            "micros":[{"unread":1},{}]})",
                                           R"({"stage":3,"input_grad":1,"persistence":2,"reads":1,
            "reads_late":1,"layers":[{}],"calls":[{"wrap":1}],"micros":[{"looks":1}]})"));

// A backward that is refused at its end, behind buckets that were flushed: what its reductions use
// stays until they are done, and its pending sums go.
INSTANTIATE_TEST_SUITE_P(
    RefusedLate, UnmutatedCase,
    ::testing::Values(
        R"({"stage":2,"precision":2,"is_manual":1,"bucket":1,"has_overlap":1,
            "layers":[{},{},{}],"calls":[{},{"layer":1},{"layer":2}],"micros":[{"misuse":6}]})",
        R"({"stage":3,"precision":2,"is_manual":1,"input_grad":1,"bucket":2,"experts":1,
            "layers":[{}],"calls":[{}],"micros":[{"misuse":6}]})",
        R"({"stage":1,"precision":2,"is_manual":1,"input_grad":1,"bucket":8,
            "has_overlap":1,"experts":1,"layers":[{"inputs":3}],"calls":[{}],
            "micros":[{"misuse":6}]})"));

// A load drops the gradients of a window that was not stepped.
INSTANTIATE_TEST_SUITE_P(LoadInWindow, UnmutatedCase,
                         ::testing::Values(R"({"stage":3,"layers":[{}],"calls":[{}],
            "micros":[{"restores":2}]})"));

// What a window used before zero_grad() is not used by the step that ends it (E15).
INSTANTIATE_TEST_SUITE_P(UsedBeforeClear, UnmutatedCase,
                         ::testing::Values(R"({"stage":2,"accumulation":2,"is_offloaded":1,
            "needs_all":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{},{"clears":1,"skips":1}]})"));

// A step in the middle of a backward, in stage 0, too; and another engine's backward there, which
// leaves no callback on a task that is not its own.
INSTANTIATE_TEST_SUITE_P(
    InsideBackward, UnmutatedCase,
    ::testing::Values(R"({"layers":[{}],"calls":[{}],"micros":[{"interrupt":1,"interrupt_at":1}]})",
                      R"({"stage":1,"engines":2,"layers":[{}],"calls":[{}],
            "micros":[{"interrupt":4,"interrupt_at":1}]})"));

// What a link passes back left the range of float16, and nothing times that is not a number.
INSTANTIATE_TEST_SUITE_P(
    LinkOutOfRange, UnmutatedCase,
    ::testing::Values(
        R"({"ranks":3,"stage":3,"precision":2,"is_manual":1,"accumulation":2,"owns_scale":2,
            "layers":[{},{"inputs":2,"outputs":3,"is_linked":1}],"calls":[{},{"layer":1}],
            "micros":[{"gathers":2},{"repeats":1}]})",
        R"({"ranks":3,"stage":3,"precision":2,"is_manual":1,"accumulation":2,"input_grad":1,
            "is_sgd":1,"experts":1,"layers":[{"is_linked":1}],"calls":[{}],
            "micros":[{},{"aborts":1},{"aborts":1},{}]})"));

// What was gathered ahead is given up by a user's context: other parameters come last then.
INSTANTIATE_TEST_SUITE_P(LooksAhead, UnmutatedCase,
                         ::testing::Values(R"({"stage":3,"input_grad":1,"prefetch":3,"live":7,
            "layers":[{"inputs":2,"has_bias":1},{"is_raw":1}],
            "calls":[{"wrap":1},{"layer":1}],"micros":[{},{"looks":1}]})",
                                           R"({"stage":3,"prefetch":2,"live":11,
            "layers":[{"inputs":2,"outputs":3},{"outputs":1},{"inputs":2,"outputs":3}],
            "calls":[{},{"layer":1},{"layer":2},{}],"micros":[{},{"looks":1}]})"));

// A load is what an engine's next events count from, also where a step comes first.
INSTANTIATE_TEST_SUITE_P(StepAfterLoad, UnmutatedCase,
                         ::testing::Values(R"({"stage":1,"engines":2,"layers":[{"is_frozen":1},{}],
            "calls":[{},{"layer":1}],
            "micros":[{"restores":1,"interrupt":4,"interrupt_at":2},{}]})"));

// A backward fails in the checkpoint that its forward ran in: the outermost task had no prologue.
INSTANTIATE_TEST_SUITE_P(FailedInCheckpoint, UnmutatedCase,
                         ::testing::Values(R"({"stage":1,"input_grad":1,"is_scattered":1,
            "layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"aborts":1,"is_uncleared":1,"wrapped":1}]})"));

// With create_graph autograd makes another tensor of .grad, which has what a bucket has of it.
INSTANTIATE_TEST_SUITE_P(GraphOfGradients, UnmutatedCase,
                         ::testing::Values(R"({"stage":2,"is_scattered":1,"layers":[{}],
            "calls":[{},{"wrap":1}],"micros":[{"creates":1}]})",
                                           R"({"ranks":2,"stage":3,"layers":[{}],
            "calls":[{},{"wrap":1}],"micros":[{"creates":1,"keeps":2}]})"));

// A GradScaler begins with what float16 cannot hold, and halves it with each overflow.
INSTANTIATE_TEST_SUITE_P(GradScaler, UnmutatedCase,
                         ::testing::Values(R"({"precision":3,"has_grad_scaler":1,"layers":[{}],
            "calls":[{}],"micros":[{},{"overflow":1},{}]})",
                                           R"({"ranks":2,"stage":3,"precision":3,"is_manual":1,
            "has_grad_scaler":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"overflow":1},{"restores":1}]})"));

// A load brings back what the scaler counted, and all weights, frozen ones too.
INSTANTIATE_TEST_SUITE_P(LostOverflow, UnmutatedCase,
                         ::testing::Values(R"({"stage":1,"precision":2,"is_dynamic":1,"scaling":1,
            "layers":[{}],"calls":[{}],"micros":[{"restores":1,"lost_overflow":1},{},{}]})",
                                           R"({"ranks":2,"stage":3,"precision":2,"is_dynamic":1,
            "layers":[{"is_frozen":1},{}],"calls":[{},{"layer":1}],
            "micros":[{"restores":3,"lost_overflow":1},{}]})"));

// Partitions on the host, and masters as narrow as the model.
INSTANTIATE_TEST_SUITE_P(Storage, UnmutatedCase,
                         ::testing::Values(R"({"ranks":2,"stage":3,"offloads_params":1,
            "is_offloaded":1,"layers":[{}],"calls":[{}],"micros":[{},{}]})",
                                           R"({"ranks":2,"stage":2,"precision":1,"masters":2,
            "layers":[{}],"calls":[{}],"micros":[{},{}]})",
                                           R"({"ranks":2,"stage":3,"precision":1,"masters":1,
            "is_offloaded":1,"layers":[{}],"calls":[{}],"micros":[{"restores":1},{}]})"));

// A backward that fails at its loss, and one that nobody scaled behind it.
INSTANTIATE_TEST_SUITE_P(FailsAtLoss, UnmutatedCase,
                         ::testing::Values(R"({"ranks":2,"stage":2,"layers":[{}],"calls":[{}],
            "micros":[{"aborts_on_loss":1,"is_uncleared":1}]})",
                                           R"({"stage":3,"precision":2,"is_manual":1,"layers":[{}],
            "calls":[{}],"micros":[{"aborts_on_loss":2}]})"));

// What the root reads first it uses last; small gathers; a wire narrower than the model.
INSTANTIATE_TEST_SUITE_P(
    HeldAndNarrow, UnmutatedCase,
    ::testing::Values(R"({"ranks":2,"stage":3,"reads":1,"holds":1,
            "layers":[{},{}],"calls":[{},{"layer":1}],"micros":[{},{}]})",
                      R"({"ranks":2,"stage":1,"has_overlap":1,"gather_bucket":2,
            "layers":[{"inputs":4}],"calls":[{}],"micros":[{},{}]})",
                      R"({"ranks":2,"is_wire_narrow":1,
            "layers":[{"inputs":5,"outputs":4}],"calls":[{}],"micros":[{}]})"));

// A gather context of the user's leaves what a retained graph keeps to be gathered again.
INSTANTIATE_TEST_SUITE_P(RetainedAndGathered, UnmutatedCase,
                         ::testing::Values(R"({"ranks":2,"stage":3,"heads":2,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"restores":2}]})"));

// A loss scale that falls no further: persistent parameters of stage 3 stayed partitioned.
INSTANTIATE_TEST_SUITE_P(
    RefusedScale, UnmutatedCase,
    ::testing::Values(R"({"stage":3,"precision":2,"is_dynamic":1,"persistence":1,"has_floor":1,
            "layers":[{"outputs":1}],"calls":[{}],"micros":[{"overflow":1}]})",
                      R"({"ranks":2,"stage":1,"precision":2,"is_dynamic":1,"has_floor":2,
            "layers":[{}],"calls":[{}],"micros":[{"overflow":1},{"overflow":1},{}]})"));

// Forwards for two refused losses: the data of the case ran out.
INSTANTIATE_TEST_SUITE_P(RefusedLosses, UnmutatedCase,
                         ::testing::Values(R"({"stage":1,"precision":2,"is_manual":1,
            "layers":[{}],"calls":[{}],"micros":[{"misuse":6,"aborts_on_loss":2}]})"));

// An engine that was made for a load, tags that begin alike, changes that are taken back.
INSTANTIATE_TEST_SUITE_P(
    Ends, UnmutatedCase,
    ::testing::Values(R"({"ranks":2,"stage":3,"persistence":2,"layers":[{}],"calls":[{}],
            "micros":[{"restores":1,"renews":1},{"restores":3},{"restores":3,"renews":1}]})",
                      R"({"ranks":2,"stage":1,"precision":2,"is_dynamic":1,"layers":[{}],
            "calls":[{}],"micros":[{},{"restores":2,"renews":1}]})",
                      R"({"ranks":2,"stage":3,"layers":[{},{"is_weight_frozen":1,"has_bias":1}],
            "calls":[{},{"layer":1}],"micros":[{"gathers":7},{"gathers":7}]})"));

// What runs inside a backward and is nobody's, what is cleared inside a block, what a checkpoint
// makes past the engine.
INSTANTIATE_TEST_SUITE_P(
    Inside, UnmutatedCase,
    ::testing::Values(
        R"({"ranks":2,"stage":2,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"interrupt":6,"interrupt_at":1},{"interrupt":7,"interrupt_at":2}]})",
        R"({"ranks":2,"stage":3,"engines":2,"layers":[{}],"calls":[{}],
            "micros":[{"interrupt":7,"interrupt_at":1}]})",
        R"({"ranks":2,"stage":3,"layers":[{}],"calls":[{}],"micros":[{"block":1,"clears":2}]})",
        R"({"ranks":2,"stage":1,"is_unmanaged":1,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"block":2},{"block":2,"clears":2}]})",
        R"({"ranks":2,"stage":2,"is_manual":1,"layers":[{}],"calls":[{}],
            "micros":[{"past_engine":2}]})"));

// A failing backward of one engine inside another's left weights whole that it had gathered.
INSTANTIATE_TEST_SUITE_P(FailsInside, UnmutatedCase,
                         ::testing::Values(R"({"stage":3,"engines":2,"reuse":1,"layers":[{}],
            "calls":[{}],"micros":[{},{"outstanding":1,"interrupt":7,"interrupt_at":1}]})",
                                           R"({"ranks":2,"stage":3,"heads":2,"layers":[{},{},{}],
            "calls":[{},{"layer":1},{"layer":2}],"micros":[{"interrupt":7,"interrupt_at":1}]})"));

// Managed backwards among manual ones, graphs that are dropped, a tag that is the latest again.
INSTANTIATE_TEST_SUITE_P(Mixed, UnmutatedCase,
                         ::testing::Values(R"({"ranks":2,"stage":2,"accumulation":2,"is_manual":1,
            "layers":[{}],"calls":[{}],"micros":[{"is_undivided":1},{},{},{}]})",
                                           R"({"ranks":2,"stage":3,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{"keeps":3},{"keeps":3}]})",
                                           R"({"stage":2,"precision":2,"is_dynamic":1,"scaling":2,
            "has_floor":3,"layers":[{}],"calls":[{}],"micros":[{"overflow":1},{"overflow":1}]})"));

// The first of two backwards of a pass releases what its fetches had passed over.
INSTANTIATE_TEST_SUITE_P(SecondBackward, UnmutatedCase,
                         ::testing::Values(R"({"stage":3,"prefetch":2,"live":11,
            "layers":[{"inputs":3},{"outputs":1,"has_bias":1,"is_linked":1},{"has_bias":1}],
            "calls":[{},{"layer":1},{"layer":2},{}],
            "micros":[{"outstanding":1,"throws":1,"restores":1}]})"));

// Manual backwards among the engine's, one that is refused, and one that fails inside another's.
INSTANTIATE_TEST_SUITE_P(Modes, UnmutatedCase,
                         ::testing::Values(R"({"ranks":2,"stage":2,"engines":2,"accumulation":2,
            "layers":[{}],"calls":[{}],
            "micros":[{"interrupt":7,"interrupt_at":1},{"by_hand":1}]})",
                                           R"({"ranks":2,"stage":3,"precision":2,"layers":[{}],
            "calls":[{}],"micros":[{},{"by_hand":1}]})",
                                           R"({"ranks":2,"stage":1,"counts_nothing":1,"layers":[{}],
            "calls":[{}],"micros":[{"misuse":9},{}]})"));

// Two backwards of one engine fail inside one backward of another, which gives back at its end.
INSTANTIATE_TEST_SUITE_P(FailsInsideTwice, UnmutatedCase,
                         ::testing::Values(R"({"stage":3,"engines":2,"prefetch":1,"layers":[{}],
            "calls":[{}],
            "micros":[{},{"outstanding":3,"interrupt":7,"interrupt_at":1}]})"));

}  // namespace
}  // namespace zeroproof::mutation
