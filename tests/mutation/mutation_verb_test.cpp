// `zeroproof mutation` as a command: documents, files and what tools read.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "props/mutation_row.h"
#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

CommandResult mutation(const std::string& words) {
  return run_shell(ZP_BINARY "-mutation mutation --progress none " + words);
}

TEST(MutationVerb, WritesAnEntryThatShowsTheFaultAgainAndTellsTools) {
  const ScratchFolder scratch;
  const CommandResult run =
      mutation("A21 --seed 31 --budget 300x --unmutated 1x --workers 1 " +
               ("--write-corpus " + (scratch / "corpus")) + " --sarif " + (scratch / "s.sarif"));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const CommandResult again = mutation("--replay " + (scratch / "corpus/A21.json"));
  EXPECT_EQ(again.exit_code, 1) << again.out << again.err;
  const Json results = Json::parse(read_file(scratch / "s.sarif"))["runs"][0]["results"];
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0]["level"], "warning");
  const auto reproduce = results[0]["properties"]["reproduce"].get<std::string>();
  EXPECT_EQ(zeroproof(reproduce.substr(reproduce.find("mutation"))).exit_code, 1) << reproduce;
}

TEST(MutationVerb, DrawsTheRunOfAFaultThatItFinds) {
  const ScratchFolder scratch;
  const CommandResult run =
      mutation("A21 --seed 31 --budget 300x --unmutated 1x --workers 1 --out " + (scratch / "out"));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const std::string chart = read_file(scratch / "out/A21.svg");
  EXPECT_NE(chart.find("mutation A21"), std::string::npos);
  EXPECT_NE(chart.find("P26"), std::string::npos);
  EXPECT_FALSE(Json::parse(read_file(scratch / "out/A21.perfetto.json"))["traceEvents"].empty());
  const std::string entry = scratch / "out/A21.json";
  const CommandResult lanes = run_shell(ZP_BINARY "-mutation show " + entry);
  EXPECT_NE(lanes.out.find("graph task 0 begins"), std::string::npos) << lanes.out << lanes.err;
  const CommandResult refused = zeroproof("show " + entry);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("fault A21"), std::string::npos) << refused.err;
}

TEST(MutationVerb, AnswersWhatVerifyAsks) {
  const CommandResult run =
      mutation("A21 R24 --seed 31 --budget 1x --unmutated 2x --workers 2 --json");
  const auto row = parse_mutation_row(run.out);
  ASSERT_TRUE(row.has_value()) << run.out << run.err;
  EXPECT_EQ(row->faults, 2U);
  EXPECT_EQ(row->missed.size(), row->faults - row->found);
  EXPECT_GT(row->unmutated_executions, 0U);
  EXPECT_EQ(run.exit_code, row->is_good() && row->missed.empty() ? 0 : 1);
}

TEST(MutationVerb, RefusesWhatItDoesNotKnow) {
  for (const char* words : {"A99", "A21 --workers 0", "A21 --replay zps1:nonsense",
                            "--replay none.json", "--budget never"}) {
    const CommandResult run = mutation(words);
    EXPECT_TRUE(run.exit_code == 2 || run.exit_code == 5) << words << " " << run.exit_code;
    EXPECT_EQ(run.out, "") << words;
  }
}

}  // namespace
}  // namespace zeroproof::cli_test
