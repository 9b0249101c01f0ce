#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string_view>
#include <vector>

#include "props/program/shrink.h"
#include "props/program/source.h"
#include "props/program/source_chooser.h"

namespace zeroproof::program {
namespace {

// Everything that can be drawn, in spans that nest.
std::vector<int> draw_everything(Source& source) {
  std::vector<int> drawn;
  const Source::Scope whole(source, "whole");
  for (int round = 0; round < 5; ++round) {
    const Source::Scope part(source, "part");
    const std::array<std::uint32_t, 4> weights = {0, 5, 1, 2};
    const std::array<int, 3> values = {7, 8, 9};
    drawn.push_back(static_cast<int>(source.below(10)));
    drawn.push_back(source.between(-2, 3));
    drawn.push_back(source.one_in(4) ? 1 : 0);
    drawn.push_back(static_cast<int>(source.weighted(weights)));
    drawn.push_back(source.of(std::span<const int>(values)));
    drawn.push_back(static_cast<int>(source.below(1)));  // no choice
  }
  return drawn;
}

RC_GTEST_PROP(ProgramSource, A_replay_draws_what_was_drawn, (std::uint64_t seed)) {
  Source fresh(seed);
  const std::vector<int> drawn = draw_everything(fresh);
  Source replay(values_of(fresh.choices()));
  RC_ASSERT(draw_everything(replay) == drawn);
  RC_ASSERT(replay.choices().list == fresh.choices().list);
}

// Then a second replay of what was recorded records the same: the record is canonical.
RC_GTEST_PROP(ProgramSource, Any_values_can_be_replayed, (std::vector<std::uint32_t> values)) {
  Source source(values);
  const std::vector<int> drawn = draw_everything(source);
  for (const Choice& choice : source.choices().list) RC_ASSERT(choice.value < choice.bound);
  Source again(values_of(source.choices()));
  RC_ASSERT(draw_everything(again) == drawn);
  RC_ASSERT(again.choices().list == source.choices().list);
}

TEST(ProgramSource, TakesZeroForWhatIsMissingAndTheRemainderOfWhatIsTooLarge) {
  Source source({13, 9});
  EXPECT_EQ(source.below(10), 3U);
  EXPECT_EQ(source.between(5, 8), 6);
  EXPECT_EQ(source.below(10), 0U);
  EXPECT_EQ(source.between(-3, 8), -3);
  EXPECT_FALSE(source.one_in(2));
}

TEST(ProgramSource, ReplaysAnIndexWithoutWeightAsOneThatHasSome) {
  const std::array<std::uint32_t, 4> weights = {0, 5, 0, 2};
  Source source({0, 1, 2, 3, 6});
  std::vector<std::size_t> drawn;
  for (int draw = 0; draw < 5; ++draw) drawn.push_back(source.weighted(weights));
  EXPECT_EQ(drawn, (std::vector<std::size_t>{1, 1, 1, 3, 1}));
}

TEST(ProgramSource, RecordsSpansThatNest) {
  Source source(1);
  draw_everything(source);
  const Choices& choices = source.choices();
  ASSERT_EQ(choices.list.size(), 25U);
  ASSERT_EQ(choices.spans.size(), 6U);
  EXPECT_EQ(choices.spans[0].label, "whole");
  EXPECT_EQ(choices.spans[0].end, 25U);
  for (std::size_t part = 1; part < 6; ++part) {
    EXPECT_EQ(choices.spans[part].label, "part");
    EXPECT_EQ(choices.spans[part].begin, (part - 1) * 5);
    EXPECT_EQ(choices.spans[part].end, part * 5);
  }
}

TEST(ProgramSource, DrawsAsOftenAsWeightsSay) {
  const std::array<std::uint32_t, 4> weights = {1, 0, 2, 5};
  Source source(3);
  std::array<int, 4> counts = {};
  int hits = 0;
  for (int draw = 0; draw < 8000; ++draw) {
    ++counts[source.weighted(weights)];
    hits += source.one_in(8) ? 1 : 0;
  }
  EXPECT_NEAR(counts[0], 1000, 120);
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[2], 2000, 160);
  EXPECT_NEAR(counts[3], 5000, 200);
  EXPECT_NEAR(hits, 1000, 60);
}

TEST(ProgramSource, DrawsTheScheduleAfterTheProgram) {
  Source source({2, 1});
  const std::uint32_t of_the_program = source.below(5);
  SourceChooser chooser(source);
  constexpr std::array<std::string_view, 3> kNames = {"a", "b", "c"};
  EXPECT_EQ(of_the_program, 2U);
  EXPECT_EQ(chooser.choose({.site = "somewhere", .options = kNames, .state = {}}), 1U);
  EXPECT_EQ(chooser.choose({.site = "somewhere", .options = kNames, .state = {}}), 0U);
  EXPECT_EQ(source.choices().list.size(), 3U);
}

}  // namespace
}  // namespace zeroproof::program
