// The golden table of docs/spec/zero.md 1.7: every row, policy and mode, in PyTorch's order.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "props/scenario.h"
#include "sim/protocol/world.h"
#include "tests/props/test_word.h"

namespace zeroproof {
namespace {

struct GoldenCase {
  std::string scenario;
  std::string mode;
  std::string policy;
  std::string expected;
};

std::vector<GoldenCase> load_golden_cases() {
  std::ifstream file(ZP_SOURCE_DIR "/tests/props/golden_table.json");
  std::vector<GoldenCase> cases;
  const auto document = nlohmann::json::parse(file);
  for (const auto& row : document.at("rows")) {
    for (const char* policy :
         {"deepspeed-0.18.3", "deepspeed-0.18.5", "deepspeed-0.18.7", "deepspeed-pr8245"}) {
      cases.push_back({row.at("scenario"), row.at("mode"), policy, row.at(policy)});
    }
    // Derived by hand from 0.18.7's field and what the policy changes (docs/reference/policies.md).
    for (const char* policy : {"deepspeed-0.19.6", "x2"}) {
      cases.push_back({row.at("scenario"), row.at("mode"), policy,
                       row.value(policy, row.at("deepspeed-0.18.7"))});
    }
  }
  return cases;
}

std::string epilogues_text(const EngineOutcome& outcome) {
  std::vector<std::string> words;
  for (const EpilogueRecord& epilogue : outcome.epilogues) {
    words.push_back(fmt::format("{}{}", epilogue.is_automatic ? 'a' : 'x', epilogue.works_before));
  }
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ","));
}

// The outcome in the words of one expected field, so that a mismatch shows both.
std::string actual_field(const std::string& expected, const EngineOutcome& outcome) {
  const BackwardState& state = outcome.state;
  if (expected == "running" || expected == "stopped")
    return outcome.is_backward_running ? "running" : "stopped";
  if (expected.starts_with("lost:")) {
    return fmt::format("lost:{}", fmt::join(outcome.unreduced, ","));
  }
  if (expected.starts_with("seen"))
    return fmt::format("seen{:d}", state.is_backward_seen_this_step);
  if (expected.starts_with("rem")) return fmt::format("rem{}", state.remaining_hooks);
  if (expected.starts_with("maxE")) return fmt::format("maxE{}", state.max_expected_hooks);
  if (expected.starts_with("fired")) return fmt::format("fired{}", state.hooks_fired);
  if (expected != "none" && expected.starts_with("n")) {
    return fmt::format("n{}", outcome.expected_counts);
  }
  if (expected.starts_with("d")) return fmt::format("d{}", state.active_depth);
  return epilogues_text(outcome);
}

class GoldenTable : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenTable, Is_reproduced_by_the_policy) {
  const GoldenCase& row = GetParam();
  const auto scenario = load_scenario(row.scenario);
  ASSERT_TRUE(scenario) << scenario.error().text;
  NameTable names;
  NullSink sink;
  const ProtocolSetup setup{.policy = row.policy, .mode = policy_mode_of(row.mode).value()};
  ProtocolWorld world(scenario->program, setup, names, sink);
  FirstChooser chooser;
  world.run(chooser);
  for (const EngineOutcome& outcome : world.outcomes()) {
    std::istringstream fields(row.expected);
    bool has_lost = false;
    for (std::string field; fields >> field;) {
      EXPECT_EQ(field, actual_field(field, outcome)) << row.expected;
      has_lost |= field.starts_with("lost:");
    }
    if (!has_lost && !row.expected.starts_with("none")) {
      EXPECT_TRUE(outcome.unreduced.empty())
          << fmt::format("{}", fmt::join(outcome.unreduced, ","));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, GoldenTable, ::testing::ValuesIn(load_golden_cases()),
                         [](const auto& case_of) {
                           const GoldenCase& row = case_of.param;
                           return test_word(
                               fmt::format("{}_{}_{}", row.scenario, row.policy,
                                           row.mode == "count_fallback" ? "fallback" : "callback"));
                         });

}  // namespace
}  // namespace zeroproof
