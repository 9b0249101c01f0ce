#include <gtest/gtest.h>

#include "sim/zero_epilogue/dpor_search.h"
#include "sim/zero_epilogue/full_search.h"

namespace zeroproof::zero_epilogue {
namespace {

Ranks made(const std::vector<std::string>& words) {
  return std::move(Ranks::make(parse_settings(words).value()).value());
}

std::vector<Settings> tiny_instances() {
  std::vector<Settings> all;
  Settings at;
  for (at.ranks = 1; at.ranks <= 2; ++at.ranks)
    for (at.hooks = 1; at.hooks <= 4; ++at.hooks)
      for (at.bucket = 1; at.bucket <= 2; ++at.bucket)
        for (at.passes = 1; at.passes <= 2; ++at.passes)
          for (unsigned order = 0; order < 4; ++order)
            for (unsigned late = 0; late < 2; ++late)
              for (unsigned defect = 0; defect < 10; ++defect) {
                at.order = static_cast<HookOrder>(order);
                at.is_late = late != 0;
                at.defect = static_cast<Defect>(defect);
                if (at.defect == Defect::launch_when_filled && at.collectives() > 4) continue;
                all.push_back(at);
              }
  return all;
}

// All orders, both launch rules, all defects: the properties that the full search finds violated,
// and no class twice.
TEST(ModelDpor, Agrees_with_the_full_search_and_repeats_no_class) {
  std::size_t compared = 0;
  for (const Settings& settings : tiny_instances()) {
    auto ranks = Ranks::make(settings);
    if (!ranks || ranks->code_space() > 20'000) continue;
    const DporResult reduced =
        search_dpor(*ranks, [](const DporCounts& counts) { return counts.executions == 600; });
    if (!reduced.counts.has_exhausted) continue;
    const auto full = search_all(*ranks);
    ++compared;
    ASSERT_EQ(reduced.counts.blocked, 0U) << settings_text(settings);
    ASSERT_EQ(reduced.counts.executions, reduced.classes) << settings_text(settings);
    for (std::size_t i = 1; i < kProperties; ++i) {
      const auto property = static_cast<Property>(i);
      ASSERT_EQ(full->findings.has(property), reduced.findings.has(property))
          << settings_text(settings) << ' ' << property_name(property);
      if (!full->findings.has(property)) continue;
      ASSERT_EQ(full->findings.least_events(property), reduced.findings.least_events(property))
          << settings_text(settings) << ' ' << property_name(property);
    }
  }
  EXPECT_GT(compared, 400U);
}

// Each rank chooses its interface and the order of its hooks; no other choice matters.
TEST(ModelDpor, Visits_each_choice_of_the_ranks_once) {
  const auto executions = [](const std::vector<std::string>& words) {
    return search_dpor(made(words)).counts.executions;
  };
  EXPECT_EQ(executions({"P=1", "N=5"}), 2U * 120);
  EXPECT_EQ(executions({"P=2", "N=3"}), 12U * 12);
  EXPECT_EQ(executions({"P=2", "N=4"}), 48U * 48);
  EXPECT_EQ(executions({"P=2", "N=3", "K=2"}), 72U * 72);
  EXPECT_EQ(executions({"P=3", "N=12", "order=chain"}), 8U);
  EXPECT_EQ(executions({"P=3", "N=2", "B=1"}), 64U);
}

TEST(ModelDpor, Finds_each_planted_defect) {
  for (unsigned defect = 1; defect < 10; ++defect) {
    const auto name = std::string(defect_name(static_cast<Defect>(defect)));
    const Ranks ranks = made({"P=2", "N=4", "N1=2", "defect=" + name});
    const auto full = search_all(ranks);
    const DporResult found = search_dpor(ranks);
    EXPECT_EQ(found.findings.first(), full->findings.first()) << name;
  }
}

}  // namespace
}  // namespace zeroproof::zero_epilogue
