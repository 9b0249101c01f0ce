// Checkpoints in memory are what files would have given.
#include "props/train/kept_checkpoints.h"

#include <gtest/gtest.h>

namespace zeroproof::train {
namespace {

TrainingState state_of(double value) {
  return {.parameters = {{"w", {2}, {value, 1.0 / 3.0}}},
          .optimizer_state = {},
          .counters = {.global_steps = 4}};
}

TEST(KeptCheckpoints, Come_back_as_from_files_and_the_newest_wins) {
  LoadedStates loaded;
  KeptCheckpoints kept(loaded);
  const LoadOptions options{.tag = "t", .targets = targets_of(state_of(0.0))};
  for (const double value : {1.0, 2.0, 1.0}) {
    ASSERT_TRUE(kept.save(state_of(value), "/folder", "t"));
    for (int rank = 0; rank < 2; ++rank) {
      const auto state = kept.load("/folder", options);
      ASSERT_TRUE(state) << state.error().text;
      EXPECT_EQ(state->parameters.at(0).values, state_of(value).parameters[0].values);
      EXPECT_EQ(state->counters, state_of(value).counters);
    }
  }
  EXPECT_FALSE(kept.load("/other", options));
}

TEST(KeptCheckpoints, Are_told_apart_by_everything_that_comes_back) {
  LoadedStates loaded;
  KeptCheckpoints kept(loaded);
  ASSERT_TRUE(kept.save(state_of(1.0), "/folder", "t"));
  const Fingerprint before = kept.fingerprint();
  TrainingState other = state_of(1.0);
  ++other.counters.global_steps;
  ASSERT_TRUE(kept.save(std::move(other), "/folder", "t"));
  EXPECT_NE(before, kept.fingerprint());
  ASSERT_TRUE(kept.save(state_of(1.0), "/folder", "t"));
  EXPECT_EQ(before, kept.fingerprint());
}

// What does not fit is refused by the same check as a file.
TEST(KeptCheckpoints, Are_checked_against_the_engine_that_loads_them) {
  LoadedStates loaded;
  KeptCheckpoints kept(loaded);
  ASSERT_TRUE(kept.save(state_of(1.0), "/folder", "t"));
  LoadOptions options{.tag = "t", .targets = targets_of(state_of(0.0))};
  ASSERT_TRUE(kept.load("/folder", options));
  options.targets->parameters[0].name = "v";
  EXPECT_FALSE(kept.load("/folder", options));
}

}  // namespace
}  // namespace zeroproof::train
