#include "props/replay/rank_set.h"

#include <gtest/gtest.h>

#include <numeric>

namespace zeroproof {
namespace {

TEST(RankSet, Prints_neighbours_as_ranges) {
  EXPECT_EQ("", rank_set({}));
  EXPECT_EQ("rank 3", rank_words({3}));
  EXPECT_EQ("ranks 0, 1", rank_words({0, 1}));
  EXPECT_EQ("ranks 0–2, 5", rank_words({0, 1, 2, 5}));
}

TEST(RankSet, Of_all_but_one_of_a_thousand_is_two_ranges) {
  std::vector<std::int32_t> ranks(1024);
  std::iota(ranks.begin(), ranks.end(), 0);
  ranks.erase(ranks.begin() + 17);
  EXPECT_EQ("0–16, 18–1023", rank_set(ranks));
}

TEST(RankSet, Counts_what_has_no_room) {
  EXPECT_EQ("0, 2, 4 and 3 more", rank_set({0, 2, 4, 6, 8, 10}, 3));
}

}  // namespace
}  // namespace zeroproof
