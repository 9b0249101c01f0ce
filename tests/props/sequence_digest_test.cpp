#include "props/replay/sequence_digest.h"

#include <gtest/gtest.h>

namespace zeroproof {
namespace {

SequenceDigest counted(std::uint64_t size, std::uint64_t wrong) {
  SequenceDigest digest;
  for (std::uint64_t index = 0; index < size; ++index)
    digest.add(index + 1, index == wrong ? 99 : index % 3);
  return digest;
}

TEST(SequenceDigest, Locates_an_early_difference_exactly) {
  const SequenceDigest mine = counted(200, 1000);
  EXPECT_FALSE(mine.first_difference(mine));
  const auto difference = mine.first_difference(counted(200, 77));
  ASSERT_TRUE(difference);
  EXPECT_TRUE(difference->is_exact());
  EXPECT_EQ(77U, difference->index);
  EXPECT_EQ(78U, difference->lc);
}

TEST(SequenceDigest, Locates_a_later_difference_to_its_block) {
  const std::uint64_t wrong = 300'000;
  const auto difference = counted(2'000'000, 3'000'000).first_difference(counted(2'000'000, wrong));
  ASSERT_TRUE(difference);
  EXPECT_FALSE(difference->is_exact());
  EXPECT_LE(difference->index, wrong);
  EXPECT_GT(difference->index_end, wrong);
  EXPECT_LE(difference->index_end - difference->index, 2'000'000U / 16);
}

TEST(SequenceDigest, Takes_a_prefix_for_equal) {
  const SequenceDigest mine = counted(7000, 9000);
  const SequenceDigest other = counted(9000, 9000);
  EXPECT_FALSE(mine.first_difference(other));
  EXPECT_FALSE(other.first_difference(mine));
}

// What docs/reference/diagnosis.md promises a sequence to cost, however long it is.
TEST(SequenceDigest, Keeps_at_most_three_kilobytes) {
  EXPECT_LE(counted(2'000'000, 3'000'000).memory_bytes(), 3072U);
}

}  // namespace
}  // namespace zeroproof
