// `zeroproof explore --level program` and the replay of what it finds.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "props/hunt/program_hunt.h"
#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

const std::string kEntry = ZP_SOURCE_DIR "/tests/mutation/corpus/A21.json";

TEST(ExplorePrograms, JudgesDrawnProgramsAgainstTheReference) {
  const CommandResult run = zeroproof("explore --level program --seed 3 --budget 5x --json");
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const Json document = Json::parse(run.out);
  EXPECT_EQ(document["schema"], "zeroproof.explore_programs/1");
  const Json& one = document["explorations"].at(0);
  EXPECT_EQ(one["subject"], "drawn programs");
  EXPECT_EQ(one["cases"], 5);
  EXPECT_GE(one["executions"], 10);  // and those of relations
  EXPECT_TRUE(one["findings"].empty());
}

TEST(ExplorePrograms, RunsAFileBesideHostThreads) {
  const CommandResult run =
      zeroproof("explore --level program --judge host --budget 4x --json " + kEntry);
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const Json one = Json::parse(run.out)["explorations"].at(0);
  EXPECT_EQ(one["subject"], kEntry);
  EXPECT_EQ(one["cases"], 4);
  EXPECT_GT(one["tokens"], 0);
  EXPECT_GT(one["values"], 0);
}

TEST(ExplorePrograms, NamesWhatItCannotRun) {
  const CommandResult judge = zeroproof("explore --level program --judge streams");
  EXPECT_EQ(judge.exit_code, 2);
  EXPECT_NE(judge.err.find("known are values, host, cuda"), std::string::npos) << judge.err;
  ScratchFolder folder;
  write_file(folder / "wrong.json", R"({"schema":"zeroproof.program/1","bodies":[]})");
  const CommandResult wrong = zeroproof("explore --level program " + folder / "wrong.json");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("bodies"), std::string::npos) << wrong.err;
  EXPECT_NE(zeroproof("explore --level program " + folder / "none.json").exit_code, 0);
}

TEST(ExplorePrograms, ShowsTheRunOfAnEntry) {
  const std::string entry =
      ZP_SOURCE_DIR "/tests/mutation/corpus/tiles_before_a_foreign_failure.json";
  const CommandResult page = zeroproof("show --html " + entry);
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_NE(page.out.find("id=\"source\""), std::string::npos);
  const CommandResult lanes = zeroproof("show " + entry);
  EXPECT_NE(lanes.out.find("engine.forward"), std::string::npos) << lanes.out << lanes.err;
}

TEST(ExplorePrograms, ReplaysTokensAndEntries) {
  const CommandResult entry = zeroproof("replay " + kEntry);
  EXPECT_EQ(entry.exit_code, 0) << entry.err;
  EXPECT_NE(entry.out.find("every property held"), std::string::npos) << entry.out;
  const std::string token = hunt::token_of({}, "unmutated");  // where every choice is 0
  const CommandResult again = zeroproof("replay --json '" + token + "'");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json document = Json::parse(again.out);
  EXPECT_EQ(document["schema"], "zeroproof.replay_program/1");
  EXPECT_EQ(document["source"], token);
  EXPECT_TRUE(document["falsified"].empty());
  EXPECT_NE(document["program"].get<std::string>().find("a.step()"), std::string::npos);
}

}  // namespace
}  // namespace zeroproof::cli_test
