// The releases that a search for a change runs, and what it concludes.
#include "props/subject/release_search.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace zeroproof::subject {

void PrintTo(const PresenceChange& change, std::ostream* out) {
  *out << change.before << " to " << change.after;
}

namespace {

// Releases as letters: `.` is without the finding, `x` with it, `?` cannot run.
struct SearchCase {
  const char* name;
  std::string releases;
  std::optional<std::size_t> found_in;
  std::vector<PresenceChange> changes;
  std::size_t tries_max;
};

constexpr Presence kComes = Presence::present;
constexpr Presence kGoes = Presence::absent;

class Search : public ::testing::TestWithParam<SearchCase> {};

TEST_P(Search, Finds_the_changes_with_few_tries) {
  const SearchCase& one = GetParam();
  std::size_t tries = 0;
  ReleaseSearch search(one.releases.size(), [&](std::size_t at) -> std::optional<Presence> {
    ++tries;
    if (one.releases[at] == '?') return Presence::cannot_run;
    return one.releases[at] == 'x' ? Presence::present : Presence::absent;
  });
  EXPECT_TRUE(search.run(one.found_in));
  EXPECT_EQ(one.changes, search.changes());
  EXPECT_LE(tries, one.tries_max);
}

INSTANTIATE_TEST_SUITE_P(
    Release, Search,
    ::testing::Values(
        SearchCase{"came", ".....xxxxxxxxxxx", {}, {{4, 5, kComes}}, 6},
        SearchCase{"went", "xxxxxxxxxxxxxx..", {}, {{13, 14, kGoes}}, 6},
        SearchCase{"came_and_went", "...xxxx.........", 5, {{2, 3, kComes}, {6, 7, kGoes}}, 9},
        SearchCase{"between", "...xxxx.........", {}, {{2, 3, kComes}, {6, 7, kGoes}}, 9},
        SearchCase{"never", "......", {}, {}, 6}, SearchCase{"always", "xxxx", 2, {}, 3},
        SearchCase{"holes", "..??xx", {}, {{1, 4, kComes}}, 6},
        SearchCase{"ends_cannot_run", "??..xx?", {}, {{3, 4, kComes}}, 7},
        SearchCase{"none_runs", "???", 1, {}, 3}, SearchCase{"one", "x", 0, {}, 1},
        SearchCase{"no_release", "", {}, {}, 0}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Release, A_search_that_is_ended_keeps_what_it_knows) {
  int tries = 0;
  ReleaseSearch search(9, [&](std::size_t) -> std::optional<Presence> {
    if (++tries == 3) return std::nullopt;
    return tries == 1 ? Presence::absent : Presence::present;
  });
  EXPECT_FALSE(search.run({}));
  EXPECT_EQ((std::vector<PresenceChange>{{0, 8, kComes}}), search.changes());
}

}  // namespace
}  // namespace zeroproof::subject
