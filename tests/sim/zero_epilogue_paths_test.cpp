#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <pcg_random.hpp>

#include "sim/zero_epilogue/events.h"
#include "sim/zero_epilogue/footprints.h"
#include "sim/zero_epilogue/path_counts.h"
#include "sim/zero_epilogue/walker.h"

namespace zeroproof::zero_epilogue {
namespace {

Settings settings_of(const std::vector<std::string>& words) {
  return parse_settings(words).value();
}

Ranks ranks_of(const std::vector<std::string>& words) {
  return std::move(Ranks::make(settings_of(words)).value());
}

// docs/spec/explorer.md 1.4, to the three digits printed there.
TEST(PathCounts, Of_complete_schedules_are_those_of_the_anchors) {
  const std::vector<std::pair<std::vector<std::string>, double>> printed = {
      {{"P=1", "N=12"}, 1.47e12},
      {{"P=2", "N=6"}, 5.95e16},
      {{"P=2", "N=7"}, 5.46e20},
      {{"P=3", "N=4"}, 6.08e20},
      {{"P=2", "N=6", "order=chain"}, 6.85e11},
      {{"P=2", "N=6", "order=spine"}, 1.25e19},
      {{"P=2", "N=6", "order=two_phase"}, 4.58e14},
      {{"P=2", "N=6", "order=two_phase", "K=2"}, 4.09e28},
      {{"P=2", "N=6", "late=1"}, 1.78e18},
      {{"P=2", "N=6", "B=3"}, 3.76e14}};
  for (const auto& [words, expected] : printed) {
    const Ranks ranks = ranks_of(words);
    const auto counts = PathCounts::make(ranks);
    EXPECT_NEAR(counts->approximately() / expected, 1, 2e-3) << settings_text(settings_of(words));
    EXPECT_NEAR(std::stod(counts->schedules().text()) / counts->approximately(), 1, 1e-12);
  }
}

TEST(PathCounts, Of_more_than_128_bits_are_still_known_to_a_double) {
  const Ranks ranks = ranks_of({"P=3", "N=12", "order=chain"});
  const auto counts = PathCounts::make(ranks);
  EXPECT_TRUE(counts->schedules().has_overflowed());
  EXPECT_NEAR(counts->approximately() / 1.59e49, 1, 2e-3);
}

// docs/spec/explorer.md 1.3, last column, as far as it is printed.
TEST(PathCounts, Give_the_exact_chance_of_each_planted_defect) {
  const auto chance = [](const std::string& defect, double printed, double digit) {
    const Ranks ranks = ranks_of({"P=2", "N=7", "K=2", "N1=3", "defect=" + defect});
    const auto counts = PathCounts::make(ranks);
    double sum = 0;
    for (std::size_t i = 1; i < kProperties; ++i) {
      sum += counts->probability(static_cast<Property>(i));
    }
    EXPECT_NEAR(sum, printed, digit / 2) << defect;
  };
  chance("M1", 0.75, 1e-9);
  chance("M2", 0.99997, 1e-5);
  chance("M3", 0.489, 1e-3);
  chance("M4", 0.9992, 1e-4);
  chance("M6", 1.0, 1e-9);
  chance("M7", 0.75, 1e-9);
  chance("M8", 0.99994, 1e-5);
  chance("M9", 7.9e-4, 1e-5);
}

TEST(PathCounts, Stop_when_they_are_told_to) {
  const Ranks ranks = ranks_of({"P=3", "N=8"});  // counting them all takes minutes
  std::uint64_t asked = 0;
  const auto counts = PathCounts::make(ranks, [&] { return ++asked == 3; });
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, ErrorCode::cannot_run);
  EXPECT_EQ(asked, 3U);
}

TEST(PathCounts, Number_the_schedules_one_to_one) {
  const Ranks ranks = ranks_of({"P=2", "N=2", "B=1"});
  const auto counts = PathCounts::make(ranks);
  const auto total = static_cast<std::uint64_t>(counts->approximately());
  std::vector<Event> before;
  for (std::uint64_t number = 0; number < total; number += 1 + total / 20'000) {
    const std::vector<Event> schedule = counts->schedule(number);
    EXPECT_TRUE(counts->number(schedule) == number);
    EXPECT_LT(before, schedule);  // dictionary order
    before = schedule;
  }
}

// All schedules of P1 N3 have to be drawn equally often: chi-square at 1 in 10,000.
TEST(PathCounts, Draw_schedules_uniformly) {
  const Ranks ranks = ranks_of({"P=1", "N=3"});
  const auto counts = PathCounts::make(ranks);
  const auto total = static_cast<std::uint32_t>(counts->approximately());
  ASSERT_GT(total, 10U);
  pcg32 random(20261122);
  std::map<std::vector<Event>, double> drawn;
  constexpr double kMean = 400;
  const double draws = kMean * total;
  for (double i = 0; i < draws; ++i) ++drawn[counts->schedule(random(total))];
  EXPECT_EQ(drawn.size(), total);
  double chi_square = 0;
  for (const auto& [schedule, count] : drawn) {
    chi_square += (count - kMean) * (count - kMean) / kMean;
  }
  const double freedom = total - 1.0;
  EXPECT_LT(chi_square, freedom + 3.72 * std::sqrt(2 * freedom) + 10);
}

// Every declared independence, in states that random walks of every defect pass through: both
// orders are possible, violate only what one alone does, and end in the same state.
TEST(Footprints, Of_independent_events_commute) {
  std::size_t checked = 0;
  pcg32 random(7);
  for (const char* late : {"late=0", "late=1"}) {
    for (unsigned defect = 0; defect < 10; ++defect) {
      const auto name = std::string(defect_name(static_cast<Defect>(defect)));
      const Ranks ranks = ranks_of({"P=3", "N=4", "K=2", late, "defect=" + name});
      for (int walk = 0; walk < 40; ++walk) {
        for (Code code = 0;;) {
          struct Next {
            Event event;
            Property violated;
            Code code;
          };
          std::vector<Next> enabled;
          const auto look = [&](Code at) {
            std::vector<Next> found;
            for_each_event(ranks, at, kAllProcesses,
                           [&](const Event& event, Property violated, Code next) {
                             found.push_back({event, violated, next});
                           });
            return found;
          };
          const auto after = [&](Code at, const Event& event) -> const Next {
            for (const Next& next : look(at)) {
              if (next.event == event) return next;
            }
            ADD_FAILURE() << name << ": an independent event was disabled";
            return {};
          };
          enabled = look(code);
          const Digits digits = ranks.digits(code);
          for (const Next& a : enabled) {
            for (const Next& b : enabled) {
              if (!(a.event < b.event) || a.violated != Property::none ||
                  b.violated != Property::none ||
                  !are_independent(footprint_of(ranks, digits, a.event),
                                   footprint_of(ranks, digits, b.event))) {
                continue;
              }
              const Next ab = after(a.code, b.event);
              const Next ba = after(b.code, a.event);
              ASSERT_EQ(ab.violated, Property::none) << name;
              ASSERT_EQ(ba.violated, Property::none) << name;
              ASSERT_EQ(ab.code, ba.code) << name;
              ++checked;
            }
          }
          std::erase_if(enabled, [](const Next& n) { return n.violated != Property::none; });
          if (enabled.empty()) break;
          code = enabled[random(static_cast<std::uint32_t>(enabled.size()))].code;
        }
      }
    }
  }
  EXPECT_GT(checked, 50'000U);
}

TEST(Walker, Meets_the_easy_defects_within_ten_schedules) {
  for (const char* defect : {"M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8"}) {
    const auto found =
        walk(settings_of({"P=2", "N=7", "K=2", "N1=3", std::string("defect=") + defect}),
             {.seed = 1, .schedules = 10});
    EXPECT_TRUE(found->first.has_value()) << defect;
  }
}

TEST(Walker, Meets_M9_by_chance_and_the_needle_by_novelty) {
  const auto by_chance =
      walk(settings_of({"P=2", "N=7", "K=2", "defect=M9"}), {.seed = 1, .schedules = 11'700});
  EXPECT_EQ(by_chance->first, Property::a3);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto found = walk(settings_of({"P=2", "N=11", "defect=M9"}),
                            {.kind = WalkKind::novelty, .seed = seed, .schedules = 10'000});
    EXPECT_EQ(found->first, Property::a3) << seed;
  }
}

// docs/spec/explorer.md R6: within 100,000 schedules, 10,000 as the stretch.
TEST(Walker, Meets_the_needle_by_novelty_of_pair_orders) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto found = walk(settings_of({"P=2", "N=11", "defect=M9"}),
                            {.kind = WalkKind::pair_novelty, .seed = seed, .schedules = 10'000});
    EXPECT_EQ(found->first, Property::a3) << seed;
  }
}

TEST(Walker, Violates_as_often_as_the_exact_chance_says) {
  const Settings settings = settings_of({"P=2", "N=4", "K=2", "defect=M3"});
  const Ranks ranks = std::move(Ranks::make(settings).value());
  const double chance = PathCounts::make(ranks)->probability(Property::a2);
  const auto found =
      walk(settings, {.seed = 3, .schedules = 20'000, .stops_at_first_finding = false});
  const double share = static_cast<double>(found->findings.violating_events()) / 20'000;
  EXPECT_NEAR(share, chance, 4 * std::sqrt(chance * (1 - chance) / 20'000));
}

TEST(Walker, Never_finds_anything_without_a_defect) {
  for (const WalkKind kind :
       {WalkKind::uniform, WalkKind::pct, WalkKind::novelty, WalkKind::pair_novelty}) {
    const auto found = walk(settings_of({"P=3", "N=5", "K=2"}), {.kind = kind, .schedules = 2'000});
    EXPECT_FALSE(found->first.has_value());
    EXPECT_EQ(found->events, 2'000 * events_of(settings_of({"P=3", "N=5", "K=2"})));
  }
}

TEST(Walker, States_what_pct_promises) {
  const auto found =
      walk(settings_of({"P=4", "N=64"}), {.kind = WalkKind::pct, .depth = 2, .schedules = 100});
  ASSERT_TRUE(found->pct.has_value());
  EXPECT_EQ(found->pct->tasks, 8U);
  EXPECT_EQ(found->pct->steps, 4U * (1 + 64 + 2 + 2 * 32));
  EXPECT_DOUBLE_EQ(found->pct->hit_chance(), 1.0 / (8 * 524));
  EXPECT_NEAR(found->pct->miss_chance(), std::pow(1 - 1.0 / (8 * 524), 100), 1e-12);
  EXPECT_EQ(own_events_of(settings_of({"P=4", "N=64"})), 396U);
  // docs/spec/explorer.md R3, where completions are not counted: 14,600 runs.
  PctCertificate own = *found->pct;
  own.steps = 396;
  EXPECT_EQ(own.runs_for(0.01), 14'587U);
  own.runs = own.runs_for(0.01);
  EXPECT_LE(own.miss_chance(), 0.01);
  --own.runs;
  EXPECT_GT(own.miss_chance(), 0.01);
}

}  // namespace
}  // namespace zeroproof::zero_epilogue
