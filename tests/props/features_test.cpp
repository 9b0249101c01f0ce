#include "props/program/features.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "props/program/program_json.h"
#include "props/subject/candidates.h"
#include "tests/read_file.h"

namespace zeroproof::subject {
namespace {

program::Program program_of(const std::string& config, const std::string& body) {
  const std::string document =
      R"({"schema": "zeroproof.program/1", "world": {"ranks": 2}, "config": )" + config +
      R"(, "models": [{"name": "m",
                       "body": [{"name": "l", "linear": {"inputs": 1, "outputs": 2}}]}],
         "engines": [{"name": "a", "model": "m"}], "body": )" +
      body + "}";
  auto program = program::parse_program(document, "p");
  EXPECT_TRUE(program) << (program ? "" : program.error().text);
  return std::move(*program);
}

constexpr const char* kForward = R"({"forward": {"engine": "a", "as": "g"}})";

std::vector<std::string> features_of_body(const std::string& config, const std::string& body) {
  return program::features_of(program_of(config, body), {});
}

bool has(const std::vector<std::string>& features, const std::string& feature) {
  return std::ranges::find(features, feature) != features.end();
}

TEST(Features, Are_what_a_program_brings_together) {
  const auto features =
      features_of_body(R"({"zero_optimization": {"stage": 1}, "gradient_accumulation_steps": 2})",
                       "[" + std::string(kForward) + R"(, {"sum": {"values": ["g"], "as": "s"}},
      {"backward": {"engine": "a", "value": "s", "retain_graph": true}},
      {"backward": {"value": "g"}}])");
  for (const char* const feature : {"forward > sum", "backward+engine+retain_graph(sum) > backward",
                                    "/gradient_accumulation_steps=2 x backward",
                                    "world.ranks=2 x forward", "linear x backward"})
    EXPECT_TRUE(has(features, feature)) << feature;
  EXPECT_TRUE(std::ranges::is_sorted(features));
  EXPECT_EQ(features.end(), std::ranges::adjacent_find(features));
  EXPECT_FALSE(has(features, "sum > forward"));
}

TEST(Features, Name_what_is_inside_and_what_is_refused) {
  const auto features = features_of_body(R"({"zero_optimization": {"stage": 1}})",
                                         "[" + std::string(kForward) +
                                             R"(, {"block": {"kind": "no_sync", "engine": "a",
                          "body": [{"step": {"engine": "a"}}]}}])");
  EXPECT_TRUE(has(features, "block+no_sync+engine ( step"));
  EXPECT_TRUE(has(features, "refused: step_inside_no_sync"));
}

TEST(Features, Name_productions_in_their_order) {
  const auto rows = program::grammar();
  const auto features = program::features_of(program_of("{}", "[]"), {&rows[0], &rows[3]});
  EXPECT_EQ(1U, features.size());
  EXPECT_EQ(fmt::format("production: {}, {}", rows[0].name, rows[3].name), features.front());
}

TEST(FeatureCounts, Know_how_rare_features_are) {
  FeatureCounts counts;
  EXPECT_DOUBLE_EQ(1.0, counts.rarity_of({"a", "b"}));
  counts.add({"a", "b"});
  counts.add(std::vector<std::string>{"a"});
  EXPECT_DOUBLE_EQ((1.0 / 3 + 1.0 / 2) / 2, counts.rarity_of({"a", "b"}));
  EXPECT_GT(counts.rarity_of({"c"}), counts.rarity_of({"a", "b"}));
  EXPECT_DOUBLE_EQ(0.0, counts.rarity_of({}));
  FeatureCounts others;
  others.add(std::vector<std::string>{"c"});
  others.add(counts);
  EXPECT_EQ(3U, others.size());
  EXPECT_EQ(2U, others.by_name().at("a"));
}

SubjectCases small_cases() {
  const std::string path = ZP_SOURCE_DIR "/tests/data/capabilities/small.json";
  auto cases = SubjectCases::of(read_file(path), path);
  EXPECT_TRUE(cases) << (cases ? "" : cases.error().text);
  return std::move(*cases);
}

TEST(Candidates, Are_of_one_case_and_begin_with_the_rarest) {
  const SubjectCases cases = small_cases();
  const CaseId first{.seed = 3, .number = 5};
  FeatureCounts counts;
  const auto before = candidates_of(cases, first, 4, counts);
  ASSERT_GT(before.size(), 1U);
  for (const Candidate& one : before) {
    EXPECT_EQ(5U, one.drawn.id.number);
    const DrawnCase again = cases.at(one.drawn.id);
    EXPECT_EQ(program::program_line(again.program), program::program_line(one.drawn.program));
  }
  EXPECT_EQ(0U, before.front().drawn.id.candidate) << "all are equally rare";
  // What ran is no longer rare.
  for (int i = 0; i < 3; ++i) counts.add(before.front().features);
  const auto after = candidates_of(cases, first, 4, counts);
  EXPECT_NE(0U, after.front().drawn.id.candidate);
  EXPECT_TRUE(std::ranges::is_sorted(after, std::ranges::greater{}, &Candidate::rarity));
}

// Of the same seed and as many programs.
TEST(Candidates, Cover_more_than_programs_that_are_not_chosen) {
  const SubjectCases cases = small_cases();
  const auto covered = [&](std::uint64_t candidates) {
    FeatureCounts counts;
    for (std::uint64_t number = 0; number < 60; ++number)
      counts.add(candidates_of(cases, {1, number, 0}, candidates, counts).front().features);
    return counts.size();
  };
  EXPECT_GT(covered(4), covered(1) * 11 / 10);
}

}  // namespace
}  // namespace zeroproof::subject
