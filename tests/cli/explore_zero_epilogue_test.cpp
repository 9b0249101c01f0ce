// explore zero_epilogue and the replay of its schedules.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

const std::string kDefects = "explore zero_epilogue --set P=2 --set N=7 --set K=2 --set N1=3 ";

Json json_of(const CommandResult& result) {
  return Json::parse(result.out, nullptr, false);
}

TEST(CommonModel, Names_every_violated_property_in_both_searches) {
  for (const std::string mode : {"", "--no-reduction "}) {
    const CommandResult result = zeroproof(kDefects + mode + "--set defect=M1 --json");
    EXPECT_EQ(1, result.exit_code) << result.err;
    const Json document = json_of(result);
    ASSERT_EQ(2U, document["findings"].size()) << mode;
    EXPECT_EQ("A2", document["property"]);
    EXPECT_EQ(10, document["events"]);
    EXPECT_EQ("A5", document["findings"][1]["property"]);
    EXPECT_EQ(28, document["findings"][1]["events"]);
    EXPECT_EQ(28U, document["findings"][1]["counterexample"].size());
  }
}

TEST(CommonModel, Is_visited_by_dpor_once_a_class_within_its_budget) {
  const CommandResult all = zeroproof("explore zero_epilogue --set N=3 --scheduler dpor --json");
  EXPECT_EQ(0, all.exit_code);
  EXPECT_EQ("144", json_of(all)["schedules"]);
  EXPECT_EQ(1.0, json_of(all)["redundancy"]);
  const CommandResult some =
      zeroproof("explore zero_epilogue --set N=7 --scheduler dpor --budget 100x --json");
  EXPECT_EQ(3, some.exit_code);
  EXPECT_EQ("inconclusive", json_of(some)["verdict"]);
}

TEST(CommonModel, Shows_a_random_finding_minimised_and_replays_its_token_and_file) {
  const ScratchFolder scratch;
  const CommandResult found = zeroproof(kDefects +
                                        "--set defect=M9 --scheduler random --seed 3 --json "
                                        "--out " +
                                        (scratch / "out"));
  ASSERT_EQ(1, found.exit_code) << found.err;
  EXPECT_EQ(26, json_of(found)["events"]);
  const std::string token = json_of(found)["token"];
  EXPECT_LE(token.size(), 64U);
  const std::string file = scratch / "out/zero_epilogue-A3.zpe";
  for (const std::string& word : {token, file}) {
    const CommandResult again = zeroproof("replay --json " + word);
    EXPECT_EQ(1, again.exit_code) << again.err;
    EXPECT_EQ(json_of(found)["counterexample"], json_of(again)["counterexample"]);
    EXPECT_EQ("as it says", json_of(again)["replayed"]);
  }
}

TEST(CommonModel, Says_what_had_to_change_in_a_schedule_of_other_rules) {
  const ScratchFolder scratch;
  const std::string file = scratch / "other.zpe";
  write_file(
      file, "zpe1.AAAAA.P1N2.c.A3x6\n# by hand\n0 choose_callback\n0 hook 1\n0 hook 1\n0 hook 0\n");
  const CommandResult result = zeroproof("replay --json " + file);
  EXPECT_EQ(4, result.exit_code);
  const std::string text = json_of(result)["replayed"];
  EXPECT_NE(text.find("other rules"), text.npos) << text;
  EXPECT_NE(text.find("event 3 had to change: hook 1 of rank 0"), text.npos) << text;
  write_file(file, "zpe1.AAAAA.P1N2.c.A3x6\n0 hook 2\n");
  const CommandResult bad = zeroproof("replay " + file);
  EXPECT_EQ(5, bad.exit_code);
  EXPECT_NE(bad.err.find("other.zpe:2"), bad.err.npos) << bad.err;
}

TEST(CommonModel, Minimises_the_settings_too_when_asked) {
  const CommandResult result =
      zeroproof(kDefects + "--set defect=M7 --scheduler random --minimize-settings --json");
  const Json finding = json_of(result)["findings"][0];
  EXPECT_EQ(7, finding["events"]);
  EXPECT_EQ("P=1 N=1 K=2 defect=M7", finding["settings"]);
}

TEST(CommonModel, Fails_when_a_probe_is_missed) {
  const std::string random = "explore zero_epilogue --set P=3 --set N=5 --scheduler random --json ";
  const CommandResult good = zeroproof(random + "--coverage --budget 20000x");
  EXPECT_EQ(0, good.exit_code);
  const Json coverage = json_of(good)["coverage"];
  EXPECT_EQ(coverage["pair_orders"], coverage["feasible_pair_orders"]);
  EXPECT_EQ(10U, coverage["states_by_tenth"].size());
  // One rank and one schedule: one of the two interfaces.
  const CommandResult missed = zeroproof(
      "explore zero_epilogue --set P=1 --set N=5 --scheduler random --coverage --budget 1x");
  EXPECT_EQ(3, missed.exit_code);
  EXPECT_NE(missed.out.find("missed: by_c"), missed.out.npos) << missed.out;
}

TEST(CommonModel, Keeps_what_it_has_when_interrupted) {
  const ScratchFolder scratch;
  const std::string junit = scratch / "junit.xml";
  const CommandResult result =
      run_shell("timeout --preserve-status -s INT 1 " ZP_BINARY
                " explore zero_epilogue --set N=12 --scheduler dpor --json --junit " +
                junit);
  EXPECT_EQ(130, result.exit_code) << result.err;
  EXPECT_EQ("interrupted", json_of(result)["verdict"]);
  EXPECT_NE(json_of(result)["schedules"], "0");
  EXPECT_NE(read_file(junit).find("name=\"A5\""), std::string::npos);
}

}  // namespace
}  // namespace zeroproof::cli_test
