#include "zeroproof/internal/engine/release.h"

#include <gtest/gtest.h>

namespace zeroproof {
namespace {

Release release(std::string_view text) {
  return Release::parse(text).value();
}

TEST(Release, Is_read_with_and_without_the_package) {
  EXPECT_EQ(release("0.19.6"), (Release{.major = 0, .minor = 19, .patch = 6}));
  EXPECT_EQ(release("deepspeed-0.19.6"), release("0.19.6"));
  EXPECT_EQ(release("deepspeed-0.19.6").text(), "0.19.6");
}

TEST(Release, Is_ordered_by_numbers_and_not_by_letters) {
  EXPECT_LT(release("0.18.9"), release("0.18.10"));
  EXPECT_LT(release("0.9.9"), release("0.18.3"));
}

TEST(Release, Refuses_what_is_none_and_names_it) {
  for (const std::string_view text :
       {"", "deepspeed-", "0.19", "0.19.", "0.19.6.1", "0.19.x", "0.-1.6", "pr7886"}) {
    const auto parsed = Release::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().text.find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(ReleaseRange, Holds_both_of_its_ends) {
  const ReleaseRange range{.first = release("0.18.7"), .last = release("0.19.5")};
  EXPECT_TRUE(range.contains(release("0.18.7")));
  EXPECT_TRUE(range.contains(release("0.19.5")));
  EXPECT_FALSE(range.contains(release("0.18.6")));
  EXPECT_FALSE(range.contains(release("0.19.6")));
}

}  // namespace
}  // namespace zeroproof
