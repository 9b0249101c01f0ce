// What cases are drawn from.
#include "props/train/case_draw.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace zeroproof::train {
namespace {

// One that fits nothing could as well not be there.
TEST(CaseDraw, Every_addition_fits_some_case) {
  constexpr std::uint64_t kCases = 3000;
  const std::vector<Addition> all = all_additions();
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool fits = false;
    for (std::uint64_t seed = 0; seed < kCases && !fits; ++seed) {
      Draws draws(seed);
      const CaseSpec spec = draw_case(seed);
      fits = with_few(spec, {&all[i], 1}, 1, draws) != spec;
    }
    EXPECT_TRUE(fits) << "addition " << i << " of " << all.size();
  }
}

RC_GTEST_PROP(CaseDraw, Few_additions_are_few_and_valid, (std::uint64_t seed)) {
  const std::vector<Addition> all = all_additions();
  const CaseSpec spec = draw_case(seed);
  Draws draws(seed);
  RC_ASSERT(with_few(spec, all, 0, draws) == spec);
  RC_ASSERT(why_invalid(with_few(spec, all, 3, draws)).empty());
}

// An addition that makes no valid case leaves it as it was.
TEST(CaseDraw, What_does_not_fit_is_left_out) {
  constexpr Addition kWrong[] = {{1, [](CaseSpec& spec, Draws&) { spec.ranks = 0; }}};
  const CaseSpec spec = draw_case(1);
  Draws draws(1);
  EXPECT_EQ(with_few(spec, kWrong, 2, draws), spec);
  EXPECT_EQ(with_drawn(spec, {.stream = 1, .one_in = 1, .all = kWrong}, 1), spec);
}

}  // namespace
}  // namespace zeroproof::train
