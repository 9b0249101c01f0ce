// Checkpoints of generated programs, as files: no judge has anything against the unmutated engine.
#include "tests/mutation/unmutated_case.h"

namespace zeroproof::mutation {
namespace {

class KeptCase : public ::testing::TestWithParam<const char*> {};

TEST_P(KeptCase, Holds) {
  expect_unmutated(GetParam());
}

// A file of each kind of damage, a pointer to the latest one, a checkpoint that is gone.
INSTANTIATE_TEST_SUITE_P(Damaged, KeptCase,
                         ::testing::Values(R"({"ranks":2,"stage":3,"accumulation":4,"layers":[{}],
            "calls":[{}],"micros":[{"restores":5,"damages":1},{"restores":5,"damages":44},
            {"restores":5,"damages":31},{"restores":5,"damages":18}]})",
                                           R"({"ranks":2,"stage":1,"accumulation":4,"layers":[{}],
            "calls":[{}],"micros":[{"restores":5,"damages":5},{"restores":5,"damages":6},
            {"restores":5,"damages":19},{}]})"));

// Of other groups, steps, shapes, names.
INSTANTIATE_TEST_SUITE_P(
    Misfit, KeptCase,
    ::testing::Values(R"({"ranks":2,"stage":2,"accumulation":4,"groups":2,
            "layers":[{},{},{}],"calls":[{},{"layer":1},{"layer":2}],
            "micros":[{"restores":7},{"restores":7,"damages":1},{"restores":7,"damages":2},{}]})",
                      R"({"stage":1,"accumulation":4,"layers":[{}],"calls":[{}],
            "micros":[{"restores":7,"damages":3},{"restores":7,"damages":4},
            {"restores":7,"damages":5},{}]})"));

// Files that fail on one rank, and what a save that was cut short left.
INSTANTIATE_TEST_SUITE_P(Failing, KeptCase,
                         ::testing::Values(R"({"ranks":2,"stage":3,"accumulation":4,"layers":[{}],
            "calls":[{}],"micros":[{"restores":8},{"restores":8,"damages":25},
            {"restores":4,"damages":1},{}]})",
                                           R"({"ranks":2,"stage":1,"accumulation":2,"engines":2,
            "layers":[{}],"calls":[{}],
            "micros":[{"restores":9,"damages":5},{"restores":9}]})"));

// A load leaves a loss scale of the user's; one that none may be is refused.
INSTANTIATE_TEST_SUITE_P(Scales, KeptCase,
                         ::testing::Values(R"({"ranks":2,"stage":2,"precision":2,"owns_scale":1,
            "layers":[{}],"calls":[{}],"micros":[{"restores":1},{"restores":2,"misscales":1}]})",
                                           R"({"stage":3,"precision":2,"is_dynamic":1,"layers":[{}],
            "calls":[{}],"micros":[{"misscales":4},{"restores":3,"misscales":3}]})"));

// What an earlier window saved cannot be read on one rank, under a loss scale that has moved.
INSTANTIATE_TEST_SUITE_P(Outdated, KeptCase,
                         ::testing::Values(R"({"ranks":2,"stage":1,"precision":2,"is_dynamic":1,
            "scaling":2,"layers":[{}],"calls":[{}],
            "micros":[{"restores":4},{"overflow":1,"restores":10,"damages":1},
            {"restores":10}]})",
                                           R"({"ranks":3,"stage":3,"layers":[{}],"calls":[{}],
            "micros":[{"restores":9,"damages":2},{"restores":10,"damages":4}]})"));

}  // namespace
}  // namespace zeroproof::mutation
