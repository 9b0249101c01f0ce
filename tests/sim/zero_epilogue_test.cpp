#include <gtest/gtest.h>

#include <ostream>

#include "sim/zero_epilogue/full_search.h"
#include "sim/zero_epilogue/reduced_search.h"

namespace zeroproof::zero_epilogue {
namespace {

Settings parsed_settings(const std::vector<std::string>& words) {
  auto settings = parse_settings(words);
  EXPECT_TRUE(settings.has_value()) << settings.error().text;
  return settings.value_or(Settings{});
}

Ranks ranks_of(const Settings& settings) {
  auto ranks = Ranks::make(settings);
  if (!ranks) throw std::runtime_error(ranks.error().text);
  return std::move(*ranks);
}

// docs/spec/explorer.md 1.4: counts of an explorer that is not ours, confirmed by TLC and SPIN.
struct Counted {
  std::vector<std::string> words;
  std::uint64_t states;
  std::uint64_t transitions;
  friend std::ostream& operator<<(std::ostream& out, const Counted& counted) {
    for (const std::string& word : counted.words) out << word << ' ';
    return out;
  }
};

class CanonicalCounts : public ::testing::TestWithParam<Counted> {};

TEST_P(CanonicalCounts, The_full_space_has_as_many_states_and_transitions) {
  const Ranks ranks = ranks_of(parsed_settings(GetParam().words));
  const auto found = search_all(ranks, 2);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->counts.states, GetParam().states);
  EXPECT_EQ(found->counts.transitions, GetParam().transitions);
  EXPECT_TRUE(found->findings.is_empty());
  EXPECT_TRUE(search_reduced(ranks).findings.is_empty());
}

INSTANTIATE_TEST_SUITE_P(
    Anchors, CanonicalCounts,
    ::testing::Values(
        Counted{{"P=1", "N=12"}, 14'575, 69'198}, Counted{{"P=2", "N=6"}, 36'637, 179'636},
        Counted{{"P=2", "N=7"}, 145'665, 822'340}, Counted{{"P=2", "N=8"}, 568'893, 3'657'436},
        Counted{{"P=2", "N=10"}, 9'035'901, 71'752'324}, Counted{{"P=3", "N=4"}, 105'453, 538'746},
        Counted{{"P=3", "N=6"}, 5'810'941, 42'906'882},
        Counted{{"P=2", "N=6", "order=chain"}, 1'977, 5'436},
        Counted{{"P=2", "N=6", "order=spine"}, 61'193, 298'084},
        Counted{{"P=2", "N=6", "order=two_phase"}, 5'809, 19'692},
        Counted{{"P=2", "N=6", "order=two_phase", "K=2"}, 12'929, 43'052},
        Counted{{"P=2", "N=6", "late=1"}, 40'113, 223'988},
        Counted{{"P=3", "N=12", "order=chain"}, 1'509'145, 7'372'824},
        Counted{{"P=2", "N=6", "B=3"}, 23'533, 126'268},
        Counted{{"P=2", "N=8", "order=spine"}, 993'157, 6'300'664},
        Counted{{"P=3", "N=8", "order=two_phase"}, 3'287'365, 22'202'424},
        Counted{{"P=2", "N=8", "order=two_phase", "K=2"}, 55'613, 243'456},
        Counted{{"P=3", "N=6", "late=1"}, 6'565'723, 55'494'990}));

// docs/spec/explorer.md 1.3, column "shortest, in our events".
struct Planted {
  std::string defect;
  Property property;
  std::uint64_t events;
  friend std::ostream& operator<<(std::ostream& out, const Planted& planted) {
    return out << planted.defect;
  }
};

class PlantedDefects : public ::testing::TestWithParam<Planted> {
 protected:
  Ranks ranks() const {
    return ranks_of(parsed_settings({"P=2", "N=7", "K=2", "N1=3", "defect=" + GetParam().defect}));
  }
};

TEST_P(PlantedDefects, Have_their_certified_length_in_the_full_search) {
  const auto found = search_all(ranks());
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->findings.first(), GetParam().property);
  EXPECT_EQ(found->findings.least_events(GetParam().property), GetParam().events);
}

TEST_P(PlantedDefects, Have_the_same_counterexample_in_the_reduced_search) {
  for (const Until until : {Until::every_property, Until::first_finding}) {
    const ReducedResult found = search_reduced(ranks(), until);
    ASSERT_EQ(found.findings.first(), GetParam().property);
    EXPECT_EQ(found.counterexamples.front().property, GetParam().property);
    EXPECT_EQ(found.counterexamples.front().events.size(), GetParam().events);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Anchors, PlantedDefects,
    ::testing::Values(Planted{"M1", Property::a2, 10}, Planted{"M2", Property::a1, 14},
                      Planted{"M3", Property::a2, 10}, Planted{"M4", Property::a3, 14},
                      Planted{"M5", Property::a4, 8}, Planted{"M6", Property::a3, 26},
                      Planted{"M7", Property::a5, 62}, Planted{"M8", Property::a1, 14},
                      Planted{"M9", Property::a3, 26}),
    [](const auto& given) { return given.param.defect; });

// Every combination of small numbers; the tests keep those whose code space is small.
std::vector<Settings> small_instances() {
  std::vector<Settings> all;
  Settings at;
  for (at.ranks = 1; at.ranks <= 3; ++at.ranks)
    for (at.hooks = 1; at.hooks <= 5; ++at.hooks)
      for (at.bucket = 1; at.bucket <= 3; ++at.bucket)
        for (at.passes = 1; at.passes <= 2; ++at.passes)
          for (unsigned order = 0; order < 4; ++order)
            for (unsigned late = 0; late < 2; ++late)
              for (unsigned defect = 0; defect < 10; ++defect) {
                at.order = static_cast<HookOrder>(order);
                at.is_late = late != 0;
                at.defect = static_cast<Defect>(defect);
                // M5 remembers every order of launches: too many local states beyond that.
                if (at.defect == Defect::launch_when_filled && at.collectives() > 4) continue;
                all.push_back(at);
              }
  return all;
}

TEST(Reduction, Agrees_with_the_full_search_on_verdict_properties_and_lengths) {
  std::size_t compared = 0;
  for (const Settings& settings : small_instances()) {
    auto ranks = Ranks::make(settings);
    if (!ranks || ranks->code_space() > 20'000) continue;
    const auto full = search_all(*ranks);
    const ReducedResult reduced = search_reduced(*ranks);
    ++compared;
    for (std::size_t i = 1; i < kProperties; ++i) {
      const auto property = static_cast<Property>(i);
      ASSERT_EQ(full->findings.has(property), reduced.findings.has(property))
          << settings_text(settings) << ' ' << property_name(property);
      ASSERT_EQ(full->findings.least_events(property), reduced.findings.least_events(property))
          << settings_text(settings) << ' ' << property_name(property);
    }
    ASSERT_LE(reduced.counts.states, full->counts.states) << settings_text(settings);
  }
  EXPECT_GT(compared, 1'000U);
}

TEST(FullSearch, Reports_the_same_for_any_number_of_workers) {
  for (const char* defect : {"defect=none", "defect=M3", "defect=M5"}) {
    const Ranks ranks = ranks_of(parsed_settings({"P=2", "N=6", "K=2", defect}));
    const auto alone = search_all(ranks, 1);
    for (const std::size_t workers : {2, 3, 4, 9}) {
      const auto shared = search_all(ranks, workers);
      EXPECT_EQ(alone->counts.states, shared->counts.states);
      EXPECT_EQ(alone->counts.transitions, shared->counts.transitions);
      EXPECT_EQ(alone->counts.store_bytes, shared->counts.store_bytes);
      EXPECT_EQ(alone->findings.first(), shared->findings.first());
    }
  }
}

TEST(FullSearch, Stores_a_state_in_less_than_sixteen_bytes) {
  for (const auto& words : {std::vector<std::string>{"P=2", "N=10"}, {"P=3", "N=6"}}) {
    const auto found = search_all(ranks_of(parsed_settings(words)));
    EXPECT_LT(found->counts.store_bytes, 16 * found->counts.states);
  }
}

TEST(Settings, Name_the_word_that_is_wrong) {
  const auto text = [](const std::string& word) {
    return parse_settings(std::vector<std::string>{word}).error().text;
  };
  EXPECT_EQ(text("P=9"), "zero_epilogue: --set P=9: P is a number from 1 to 8");
  EXPECT_EQ(text("late=2"), "zero_epilogue: --set late=2: late is 0 or 1");
  EXPECT_NE(text("order=chian").find("chain"), std::string::npos);
  EXPECT_NE(text("ordr=any").find("order"), std::string::npos);
}

}  // namespace
}  // namespace zeroproof::zero_epilogue
