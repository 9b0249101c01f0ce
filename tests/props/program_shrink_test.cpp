#include "props/program/shrink.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "props/program/span_list.h"

namespace zeroproof::program {
namespace {

using Numbers = std::vector<int>;

// Three ways in which a grammar draws a list.
Numbers draw_with_flags(Source& source) {
  Numbers numbers;
  while (source.below(5) > 0) {
    const Source::Scope span(source, "number");
    numbers.push_back(source.between(0, 1000));
  }
  return numbers;
}
Numbers draw_with_flags_inside(Source& source) {
  Numbers numbers;
  for (bool goes_on = true; goes_on;) {
    const Source::Scope span(source, "number");
    goes_on = source.below(5) > 0;
    if (goes_on) numbers.push_back(source.between(0, 1000));
  }
  return numbers;
}
Numbers draw_with_a_count(Source& source) {
  Numbers numbers(source.below(12));
  for (int& number : numbers) {
    const Source::Scope span(source, "number");
    number = source.between(0, 1000);
  }
  return numbers;
}

// Brackets around brackets around a number: "((7))", "(3)(4)".
std::string draw_tree(Source& source, int depth) {
  const Source::Scope span(source, "tree");
  if (depth == 0 || source.below(3) == 0) return std::to_string(source.below(10));
  std::string tree = "(" + draw_tree(source, depth - 1) + ")";
  if (source.one_in(2)) tree += draw_tree(source, depth - 1);
  return tree;
}

template <class Draw, class Fails>
StillFails replays(const Draw& draw, const Fails& fails) {
  return [=](const std::vector<std::uint32_t>& values) -> std::optional<Choices> {
    Source source(values);
    if (!fails(draw(source))) return std::nullopt;
    return source.choices();
  };
}

constexpr std::size_t kRuns = 20'000;

// Shrinks the first drawn failure of each of the seeds; what each becomes.
template <class Draw, class Fails>
auto shrunk_failures(const Draw& draw, const Fails& fails) {
  std::vector<std::invoke_result_t<Draw, Source&>> results;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Source source(seed);
    if (!fails(draw(source))) continue;
    const Shrunk shrunk = shrink(source.choices(), replays(draw, fails), kRuns);
    Source replay(values_of(shrunk.choices));
    results.push_back(draw(replay));
  }
  EXPECT_GT(results.size(), 20U);
  return results;
}

TEST(ProgramShrink, FindsTheSmallestList) {
  const auto is_large = [](const Numbers& numbers) {
    return std::ranges::any_of(numbers, [](int number) { return number >= 900; });
  };
  for (auto* const draw : {draw_with_flags, draw_with_flags_inside, draw_with_a_count}) {
    for (const Numbers& least : shrunk_failures(draw, is_large)) EXPECT_EQ(least, Numbers{900});
  }
}

TEST(ProgramShrink, SortsWhatNeedsNoOrder) {
  const auto has_three = [](const Numbers& numbers) {
    const auto count_of = [&](int low, int high) {
      return std::ranges::count_if(numbers, [&](int n) { return n >= low && n < high; });
    };
    return count_of(100, 300) > 0 && count_of(300, 600) > 0 && count_of(600, 1000) > 0;
  };
  for (auto* const draw : {draw_with_flags, draw_with_flags_inside, draw_with_a_count}) {
    for (const Numbers& least : shrunk_failures(draw, has_three))
      EXPECT_EQ(least, (Numbers{100, 300, 600}));
  }
}

TEST(ProgramShrink, PutsAPartInThePlaceOfTheWhole) {
  const auto draw = [](Source& source) { return draw_tree(source, 5); };
  const auto has_seven = [](const std::string& tree) {
    return tree.find('7') != std::string::npos || tree.find('9') != std::string::npos;
  };
  for (const std::string& least : shrunk_failures(draw, has_seven)) EXPECT_EQ(least, "7");
}

// Draws pairs, and fails where both numbers of each pair are the same allowed number.
Choices shrunk_pairs(std::vector<std::uint32_t> values, const std::set<std::uint32_t>& allowed) {
  const auto draw = [](Source& source) {
    std::vector<std::array<std::uint32_t, 2>> pairs(2);
    for (auto& pair : pairs) {
      const Source::Scope span(source, "pair");
      pair = {source.below(100), source.below(100)};
    }
    return pairs;
  };
  const auto are_allowed = [&](const std::vector<std::array<std::uint32_t, 2>>& pairs) {
    return std::ranges::all_of(
        pairs, [&](const auto& pair) { return pair[0] == pair[1] && allowed.contains(pair[0]); });
  };
  Source source(std::move(values));
  draw(source);
  return shrink(source.choices(), replays(draw, are_allowed), kRuns).choices;
}

TEST(ProgramShrink, PutsASmallerPartInThePlaceOfOneOfItsKind) {
  EXPECT_EQ(values_of(shrunk_pairs({94, 94, 21, 21}, {21, 37, 94})),
            (std::vector<std::uint32_t>{21, 21, 21, 21}));
}

TEST(ProgramShrink, SetsASpanToZerosAtOnce) {
  const auto draw = [](Source& source) {
    const std::uint32_t before = source.below(100);
    const Source::Scope span(source, "two parts");
    return std::array{before, source.below(100), source.below(100)};
  };
  const auto are_in_balance = [](const auto& drawn) {
    const std::uint32_t sum = drawn[1] + drawn[2];
    return drawn[0] >= 5 && (sum == 0 || sum == 100);
  };
  Source source({7, 30, 70});
  draw(source);
  const Shrunk shrunk = shrink(source.choices(), replays(draw, are_in_balance), kRuns);
  EXPECT_EQ(values_of(shrunk.choices), (std::vector<std::uint32_t>{5, 0, 0}));
}

TEST(ProgramShrink, CutsALongScheduleInFewRuns) {
  const auto draw = [](Source& source) {
    std::vector<std::uint32_t> schedule(2000);
    for (std::uint32_t& choice : schedule) choice = source.below(4);
    return schedule;
  };
  const auto fails = [](const auto& schedule) { return schedule[40] > 0; };
  Source source(1);
  ASSERT_TRUE(fails(draw(source)));
  const Shrunk shrunk = shrink(source.choices(), replays(draw, fails), kRuns);
  EXPECT_LT(shrunk.runs, 100U);
  const std::vector<std::uint32_t> values = values_of(shrunk.choices);
  EXPECT_EQ(std::ranges::count(values, 0U), 1999);
  EXPECT_EQ(values[40], 1U);
}

TEST(ProgramShrink, LowersWhatIsEqualTogether) {
  EXPECT_EQ(values_of(shrunk_pairs({94, 94, 94, 94}, {2, 5, 47, 94})),
            (std::vector<std::uint32_t>{47, 47, 47, 47}));
}

TEST(ProgramShrink, StopsWhereItsBudgetEnds) {
  Source source(8);
  while (draw_with_flags(source).size() < 5) {
  }
  std::size_t runs = 0;
  const auto always = [&](const std::vector<std::uint32_t>& values) -> std::optional<Choices> {
    ++runs;
    Source replay(values);
    for (int draw = 0; draw < 20; ++draw) draw_with_flags(replay);
    return replay.choices();
  };
  EXPECT_EQ(shrink(source.choices(), always, 7).runs, runs);
  EXPECT_LE(runs, 7U);
  EXPECT_EQ(shrink(source.choices(), always, 0).choices.list, source.choices().list);
}

TEST(ProgramShrink, RunsNoListTwice) {
  Source source(5);
  while (draw_tree(source, 6).size() < 20) {
  }
  std::set<std::vector<std::uint32_t>> seen;
  const auto is_deep = [&](const std::vector<std::uint32_t>& values) -> std::optional<Choices> {
    EXPECT_TRUE(seen.insert(values).second);
    Source replay(values);
    if (draw_tree(replay, 6).find(")(") == std::string::npos) return std::nullopt;
    return replay.choices();
  };
  EXPECT_GT(shrink(source.choices(), is_deep, kRuns).runs, 10U);
}

TEST(ProgramShrink, TakesSiblingsTogetherWithWhatIsBetweenThem) {
  // A parent of 7 choices, with siblings at 1 to 3, 4 to 5 and 6 to 7, and another label at the
  // end.
  Choices choices{
      .list = std::vector<Choice>(8, {1, 2}),
      .spans = {{0, 8, "whole"}, {1, 3, "a"}, {2, 3, "b"}, {4, 5, "a"}, {6, 7, "a"}, {7, 8, "c"}}};
  const std::vector<SiblingRun> runs = sibling_runs(choices);
  EXPECT_EQ(runs,
            (std::vector<SiblingRun>{{{0, 8}}, {{1, 3}, {4, 5}, {6, 7}}, {{2, 3}}, {{7, 8}}}));
  EXPECT_EQ(
      deletable_ranges(choices),
      (std::vector<Range>{
          {0, 8}, {1, 7}, {1, 4}, {5, 7}, {4, 6}, {3, 5}, {1, 3}, {7, 8}, {6, 7}, {4, 5}, {2, 3}}));
}

// An arbitrary condition on what was drawn, which its salt decides.
bool is_odd_failure(const Numbers& numbers, std::uint32_t salt) {
  std::uint32_t hash = salt;
  int large = 0;
  for (const int number : numbers) {
    hash = (hash ^ static_cast<std::uint32_t>(number / 50)) * 0x9e3779b1U;
    large += number > static_cast<int>(salt % 700) ? 1 : 0;
  }
  return large >= 1 + static_cast<int>(salt % 3) && (hash >> 29U) != 0;
}

RC_GTEST_PROP(ProgramShrink, Of_any_failure_is_one_that_is_as_simple_as_it_gets,
              (std::uint64_t seed, std::uint32_t salt)) {
  const auto fails = [=](const Numbers& numbers) { return is_odd_failure(numbers, salt); };
  for (auto* const draw : {draw_with_flags, draw_with_flags_inside, draw_with_a_count}) {
    Source source(seed);
    if (!fails(draw(source))) continue;
    const StillFails still_fails = replays(draw, fails);
    const Shrunk once = shrink(source.choices(), still_fails, kRuns);
    RC_ASSERT(once.runs < kRuns);
    RC_ASSERT(still_fails(values_of(once.choices)).has_value());
    RC_ASSERT(!is_simpler(source.choices(), once.choices));
    const Shrunk twice = shrink(once.choices, still_fails, kRuns);
    RC_ASSERT(twice.choices.list == once.choices.list);
    RC_ASSERT(shrink(source.choices(), still_fails, kRuns).runs == once.runs);
  }
}

}  // namespace
}  // namespace zeroproof::program
