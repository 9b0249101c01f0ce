// Programs of users' habits: no judge has anything against the unmutated engine.
#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class HabitCase : public ::testing::TestWithParam<const char*> {};

TEST_P(HabitCase, Holds) {
  expect_unmutated(GetParam());
}

// no_sync around a forward or a backward alone; a loss that is differentiated twice.
INSTANTIATE_TEST_SUITE_P(
    Parts, HabitCase,
    ::testing::Values(
        R"({"ranks":2,"stage":1,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"block":6},{"block":5}]})",
        R"({"ranks":2,"stage":3,"layers":[{}],"calls":[{}],"micros":[{"again":1}]})",
        R"({"ranks":2,"stage":2,"heads":2,"layers":[{}],"calls":[{},{}],
            "micros":[{"again":1,"creates":1}]})"));

// One of two engines alone has a loss scale, which another's backward cannot know; and the user's
// own scale where none is needed, also for what is differentiated inside a forward.
INSTANTIATE_TEST_SUITE_P(
    Scales, HabitCase,
    ::testing::Values(
        R"({"stage":1,"engines":2,"scales_second":1,"layers":[{}],"calls":[{}],
            "micros":[{"misuse":13},{}]})",
        R"({"stage":1,"is_tiled":1,"owns_scale":1,"layers":[{}],"calls":[{},{}],"micros":[{}]})",
        R"({"ranks":2,"stage":2,"precision":1,"owns_scale":2,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1,"overflow_kind":1},{}]})"));

// No numbers among gradients, asked for twice; looked for by nobody, in the end.
INSTANTIATE_TEST_SUITE_P(Spikes, HabitCase,
                         ::testing::Values(
                             R"({"stage":1,"precision":1,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1,"asks":1,"overflow_kind":2}]})",
                             R"({"ranks":2,"stage":3,"clip":1,"layers":[{}],"calls":[{}],
            "micros":[{},{"overflow":1,"overflow_rank":1}]})",
                             R"({"precision":1,"clip":1,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1,"overflow_kind":2}]})"));

// Two weights of a module of which the first alone is gathered ahead; the order of what a stage
// saves is its own; whoever leaves out a key of a configuration says the default.
INSTANTIATE_TEST_SUITE_P(
    Orders, HabitCase,
    ::testing::Values(
        R"({"stage":3,"prefetch":2,"layers":[{"is_raw":1,"has_twin":1}],"calls":[{}],
            "micros":[{},{}]})",
        R"({"stage":3,"first_ranks":4,"first_stage":0,"layers":[{}],"calls":[{}],
            "micros":[{},{}]})",
        R"({"ranks":2,"stage":3,"is_read":1,"layers":[{}],"calls":[{}],
            "micros":[{"restores":6},{}]})",
        R"({"ranks":2,"layers":[{}],"calls":[{}],
            "micros":[{"idle_forward":1,"gathers":2,"idles_first":1}]})",
        R"({"stage":3,"prefetch":40,"layers":[{"is_raw":1},{}],"calls":[{},{"layer":1}],
            "micros":[{"skips":1,"shortage":3,"shortage_at":1},
            {"idle_forward":1,"shortage":1,"shortage_at":1}]})",
        R"({"engines":2,"takes_turns":1,"layers":[{}],"calls":[{}],"micros":[{"asks":3},{}]})"));

// A weight of two modules; a layer that needs no gradient for a while; an autograd without
// callbacks; documents that are read.
INSTANTIATE_TEST_SUITE_P(
    Lives, HabitCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"reads":1,"reads_late":1,"registers":2,"prefetch":40,
            "layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{},{},{}]})",
        R"({"ranks":2,"stage":2,"precision":1,"reads":1,"reads_late":1,"registers":2,
            "layers":[{"has_bias":1}],"calls":[{}],"micros":[{},{"restores":1}]})",
        R"({"ranks":2,"stage":1,"accumulation":2,"layers":[{},{"has_bias":1}],
            "calls":[{},{"layer":1}],"micros":[{"freezes":2},{},{"freezes":1},{"freezes":1}]})",
        R"({"ranks":2,"stage":3,"layers":[{},{"is_weight_frozen":1,"has_bias":1}],
            "calls":[{},{"layer":1}],"micros":[{"freezes":2},{},{"freezes":1}]})",
        R"({"stage":1,"layers":[{},{}],"calls":[{}],"micros":[{"peeks":1,"freezes":2}]})",
        R"({"stage":3,"prefetch":13,"live":12,
            "layers":[{},{"inputs":2,"outputs":3},{"inputs":3}],
            "calls":[{},{"layer":1},{"layer":2}],"micros":[{"again":1},{"idle_forward":3}]})",
        R"({"stage":1,"counts_nothing":2,"layers":[{}],"calls":[{}],"micros":[{"misuse":9},{}]})",
        R"({"is_read":2,"layers":[{}],"calls":[{}],"micros":[{}]})",
        R"({"is_read":3,"layers":[{}],"calls":[{}],"micros":[{}]})",
        R"({"is_read":4,"layers":[{}],"calls":[{}],"micros":[{}]})",
        R"({"is_read":5,"layers":[{}],"calls":[{}],"micros":[{}]})"));

// Gradients as large as they may be; no class at all is safe.
INSTANTIATE_TEST_SUITE_P(
    Edges, HabitCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"precision":2,"brims":1,"layers":[{"has_bias":1}],"calls":[{}],
            "micros":[{},{"asks":1}]})",
        R"({"ranks":4,"stage":1,"precision":2,"brims":1,"clip":1,"layers":[{}],"calls":[{}],
            "micros":[{}]})",
        R"({"ranks":2,"stage":2,"precision":3,"is_unsafe":2,"layers":[{}],"calls":[{}],
            "micros":[{},{}]})"));

// What fp16 has scaled alone, what bf16 has no sum of, and a scale that grows; a step of the second
// engine in the middle of a backward of the first; losses with a dimension; a capture.
INSTANTIATE_TEST_SUITE_P(
    Small, HabitCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"precision":2,"brims":2,"layers":[{"has_bias":1}],"calls":[{}],
            "micros":[{},{}]})",
        R"({"ranks":4,"stage":1,"precision":1,"sequence":2,"brims":3,"layers":[{}],"calls":[{}],
            "micros":[{},{}]})",
        R"({"ranks":2,"stage":2,"precision":3,"has_grad_scaler":1,"grown":2,"layers":[{}],
            "calls":[{}],"micros":[{},{"restores":1},{"overflow":1},{}]})",
        R"({"ranks":2,"stage":1,"engines":2,"layers":[{}],"calls":[{}],
            "micros":[{"interrupt":12,"interrupt_at":1},{}]})",
        R"({"ranks":2,"stage":3,"engines":2,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"interrupt":12,"interrupt_at":1},{"interrupt":12,"interrupt_at":1}]})",
        R"({"ranks":2,"stage":3,"precision":2,"is_manual":1,"checks":1,"layers":[{}],"calls":[{}],
            "micros":[{"keeps_dimension":1},{"misuse":14},{"gathers":5},{"gathers":5}]})"));

// A backward past an engine that has no manual one; the user's autocast region has another dtype;
// layers in a container; a forward behind a scaled loss; weights of other shapes; a model that its
// engine has left.
INSTANTIATE_TEST_SUITE_P(
    Borders, HabitCase,
    ::testing::Values(
        R"({"ranks":2,"accumulation":2,"layers":[{}],"calls":[{}],"micros":[{"misuse":15},{}]})",
        R"({"stage":1,"owns_scale":1,"counts_nothing":1,"layers":[{}],"calls":[{}],
            "micros":[{"misuse":15},{}]})",
        R"({"ranks":2,"stage":3,"precision":3,"layers":[{"has_bias":1}],"calls":[{}],
            "micros":[{"autocasts":2},{}]})",
        R"({"stage":1,"precision":3,"has_grad_scaler":1,"layers":[{}],"calls":[{}],
            "micros":[{"autocasts":2}]})",
        R"({"ranks":2,"stage":3,"granularity":5,"packs":1,"input_grad":1,
            "layers":[{"is_raw":1},{"is_raw":1}],"calls":[{},{"layer":1}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":2,"precision":2,"is_manual":1,"layers":[{}],"calls":[{}],
            "micros":[{"clears":4,"repeats":1},{}]})",
        R"({"ranks":2,"stage":3,"layers":[{"is_raw":1,"shape":1},{"is_raw":1,"shape":2},
            {"is_raw":1,"shape":3,"inputs":1,"outputs":1}],
            "calls":[{},{"layer":1},{"layer":2}],"micros":[{},{"restores":1}]})",
        R"({"ranks":2,"stage":1,"precision":2,"accumulation":2,"layers":[{"has_bias":1}],
            "calls":[{}],"micros":[{"guests":1},{}]})",
        R"({"stage":2,"is_sgd":1,"rule":2,"layers":[{}],"calls":[{}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":1,"rule":2,"layers":[{}],"calls":[{}],"micros":[{},{}]})"));

// Graphs that end in turns; refusals in either block; experts that their class names; default tags
// and stores of the user's; documents that are refused.
INSTANTIATE_TEST_SUITE_P(
    Turns, HabitCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"heads":2,"layers":[{},{"is_raw":1},{}],
            "calls":[{},{"layer":1},{"layer":2}],"micros":[{"outstanding":4,"peeks":1},
            {"outstanding":4,"asks":1}]})",
        R"({"ranks":2,"stage":1,"layers":[{}],"calls":[{}],"micros":[{"misuse":1},{"misuse":2}]})",
        R"({"ranks":2,"stage":3,"experts":1,"leaf_by":3,"input_grad":1,"layers":[{}],
            "calls":[{}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":2,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"restores":1},{},{"restores":3},{}]})",
        R"({"stage":3,"refuses":49,"layers":[{}],"calls":[{}],"micros":[{}]})",
        R"({"stage":1,"precision":2,"layers":[{}],"calls":[{}],"micros":[{"misuse":12},{}]})"));

// A fixed loss scale of one; a loss of one engine that another one is asked to differentiate; odd
// configurations that work; a forward in a backward of stage 3; a second engine whose backward
// breaks inside one of the first; losses of two checkpoints past the engine; a managed backward
// behind a scaled loss; looks in skipped frames; a container that is safe; what is read below a
// leaf module; blocks of a frozen layer and a trained one; what nobody misses.
INSTANTIATE_TEST_SUITE_P(
    Corners, HabitCase,
    ::testing::Values(
        R"({"stage":1,"precision":2,"scales_by_one":1,"is_manual":1,"layers":[{}],"calls":[{}],
            "micros":[{"overflow":1},{"misuse":6},{}]})",
        R"({"ranks":2,"engines":2,"takes_turns":1,"layers":[{}],"calls":[{}],
            "micros":[{"misuse":16},{}]})",
        R"({"ranks":2,"stage":2,"accepts":1,"layers":[{}],"calls":[{}],"micros":[{}]})",
        R"({"ranks":2,"stage":3,"input_grad":1,"layers":[{"is_linked":1},{"is_linked":1}],
            "calls":[{},{"layer":1}],"micros":[{"interrupt":3,"interrupt_at":1},{}]})",
        R"({"ranks":2,"stage":3,"engines":2,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"interrupt":13,"interrupt_at":1},{}]})",
        R"({"ranks":2,"stage":2,"is_manual":1,"layers":[{}],"calls":[{}],
            "micros":[{"past_engine":4},{}]})",
        R"({"ranks":2,"stage":3,"precision":2,"is_manual":1,"layers":[{}],"calls":[{}],
            "micros":[{"clears":5},{}]})",
        R"({"ranks":2,"stage":3,"skips_frames":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"detour":5,"detour_at":2},{}]})",
        R"({"ranks":2,"stage":1,"precision":3,"is_unsafe":3,"packs":1,"layers":[{}],
            "calls":[{}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":3,"granularity":4,"reads":1,"input_grad":1,
            "layers":[{"is_linked":1,"is_frozen":1},{"is_linked":1}],"calls":[{},{"layer":1}],
            "micros":[{},{}]})",
        R"({"ranks":2,"stage":3,"layers":[{"is_linked":1,"is_frozen":1},{"is_linked":1},
            {"is_linked":1,"is_frozen":1},{"is_linked":1}],
            "calls":[{"wrap":2},{"layer":1,"wrap":2,"is_joined":1},{"layer":2,"wrap":2},
            {"layer":3,"wrap":2,"is_joined":1}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":2,"is_strict":1,"layers":[{},{}],"calls":[{},{"layer":1}],
            "micros":[{"skips":1},{}]})"));

// Graphs of three forwards; one that is differentiated twice around a checkpoint; a weight that two
// classes own; loss scales in windows that nothing scaled; a loss that is logged alone.
INSTANTIATE_TEST_SUITE_P(
    Graphs, HabitCase,
    ::testing::Values(
        R"({"ranks":2,"stage":3,"heads":2,"live":10,"layers":[{},{"inputs":3},
            {"inputs":4,"outputs":4}],"calls":[{},{"layer":1},{"layer":2}],
            "micros":[{"outstanding":6},{"outstanding":6,"peeks":1}]})",
        R"({"ranks":2,"stage":3,"input_grad":1,"layers":[{"is_linked":1},{"is_linked":1}],
            "calls":[{},{"layer":1,"wrap":1}],"micros":[{"again":1},{"again":1}]})",
        R"({"ranks":2,"stage":2,"precision":3,"packs":2,"layers":[{}],"calls":[{}],
            "micros":[{},{"restores":1}]})",
        R"({"ranks":2,"stage":2,"accumulation":2,"layers":[{}],"calls":[{}],
            "micros":[{"misuse":8},{"misuse":8}]})",
        R"({"ranks":2,"stage":1,"heads":2,"container":3,"is_manual":1,"is_scattered":1,
            "layers":[{},{}],"calls":[{},{"layer":1}],"micros":[{"losses":2},{"losses":2}]})",
        R"({"ranks":4,"stage":3,"precision":1,"is_wide":1,"is_wire_float32":1,
            "accumulates_float32":1,"layers":[{}],"calls":[{},{},{}],"micros":[{},{}]})",
        R"({"ranks":2,"stage":3,"precision":2,"sub_group":1,"clip":1,"layers":[{},{}],
            "calls":[{},{"layer":1}],"micros":[{},{}]})"));

}  // namespace
}  // namespace zeroproof::mutation
