// Which policy a name means: its id, its former id, or a release that behaves so.
#include <gtest/gtest.h>

#include <vector>

#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {
namespace {

struct Named {
  const char* name;
  const char* id;
};

constexpr Named kNames[] = {{"deepspeed-0.18.3", "deepspeed-0.18.3"},
                            {"deepspeed-0.18.4", "deepspeed-0.18.3"},
                            {"deepspeed-0.18.5", "deepspeed-0.18.5"},
                            {"deepspeed-0.18.6", "deepspeed-0.18.5"},
                            {"deepspeed-0.18.7", "deepspeed-0.18.7"},
                            {"deepspeed-0.18.9", "deepspeed-0.18.7"},
                            {"deepspeed-0.19.0", "deepspeed-0.18.7"},
                            {"deepspeed-0.19.5", "deepspeed-0.18.7"},
                            {"deepspeed-0.19.6", "deepspeed-0.19.6"},
                            {"deepspeed-0.19.8", "deepspeed-0.19.6"},
                            {"0.19.2", "deepspeed-0.18.7"},
                            {"pr7665", "deepspeed-0.18.3"},
                            {"pr7780", "deepspeed-0.18.5"},
                            {"pr7886", "deepspeed-0.18.7"},
                            {"pr8245", "deepspeed-pr8245"},
                            {"deepspeed-pr8245", "deepspeed-pr8245"},
                            {"x2", "x2"},
                            {"exact", "exact"}};

TEST(PolicyNames, Lead_to_the_policy_that_behaves_so) {
  for (const Named& named : kNames) {
    const auto found = find_policy(named.name);
    ASSERT_TRUE(found) << named.name << ": " << found.error().text;
    EXPECT_EQ((*found)->id, named.id) << named.name;
    EXPECT_EQ(policy_id(named.name), named.id);
  }
}

struct Refused {
  const char* name;
  const char* says;  // part of the error
};

constexpr Refused kRefused[] = {
    {"", "unknown policy ''"},
    {"pr7887", "did you mean 'pr7886'?"},
    {"deepspeed-0.19", "did you mean 'deepspeed-0.19.6'?"},
    {"deepspeed-0.18.2", "no policy is that of DeepSpeed 0.18.2"},
    {"deepspeed-0.19.9", "deepspeed-0.19.6 (DeepSpeed 0.19.6 to 0.19.8)"},
    {"something else", "known are deepspeed-0.18.3"}};

TEST(PolicyNames, That_mean_no_policy_are_refused_with_those_that_are_known) {
  for (const Refused& refused : kRefused) {
    const auto found = find_policy(refused.name);
    ASSERT_FALSE(found) << refused.name;
    EXPECT_EQ(found.error().code, ErrorCode::usage);
    EXPECT_NE(found.error().text.find(refused.says), std::string::npos) << found.error().text;
    EXPECT_EQ(policy_id(refused.name), refused.name);
  }
}

// A release has one policy, and none between the first and the last known has none.
TEST(PolicyCatalogue, Has_ranges_of_releases_in_order_that_do_not_overlap) {
  std::vector<ReleaseRange> ranges;
  for (const PolicyInfo& info : policy_catalogue()) {
    EXPECT_EQ(info.releases.has_value(), !info.releases_text().empty()) << info.id;
    if (!info.releases) continue;
    EXPECT_EQ(info.id, "deepspeed-" + info.releases->first.text());
    EXPECT_LE(info.releases->first, info.releases->last);
    if (!ranges.empty()) {
      EXPECT_LT(ranges.back().last, info.releases->first) << info.id;
    }
    ranges.push_back(*info.releases);
  }
  EXPECT_EQ(ranges.size(), 4U);
}

TEST(PolicyCatalogue, Marks_what_no_release_has) {
  for (const char* id : {"deepspeed-pr8245", "x2", "exact"})
    EXPECT_FALSE((*find_policy(id))->releases) << id;
}

}  // namespace
}  // namespace zeroproof
