// What verbs write for browsers, code scanning and GitHub.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

const std::string kRetained =
    bundled("deepspeed-edaa7221-cuda/two_losses_retain__z1_fp32_w1_r0.jsonl.gz");

TEST(Sarif, Of_replay_names_the_line_of_each_finding) {
  const ScratchFolder scratch;
  const CommandResult run = zeroproof("replay " + kRetained + " --sarif " + (scratch / "r.sarif"));
  EXPECT_EQ(1, run.exit_code) << run.err;
  const Json log = Json::parse(read_file(scratch / "r.sarif"));
  const Json& results = log["runs"][0]["results"];
  ASSERT_EQ(9U, results.size());
  const Json& rules = log["runs"][0]["tool"]["driver"]["rules"];
  for (const Json& result : results) {
    EXPECT_EQ(result["ruleId"], rules[result["ruleIndex"].get<std::size_t>()]["id"]);
  }
  const Json& place = results[0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(243, place["region"]["startLine"]);
  EXPECT_EQ("", run.err) << "nobody asked for annotations";
}

TEST(Sarif, Of_explore_and_of_the_common_models) {
  const ScratchFolder scratch;
  for (const std::string words :
       {"explore S2 --policy deepspeed-0.18.3",
        "explore zero_epilogue --set P=2 --set N=3 --set defect=M1",
        "explore hook_order --set P=2 --set N=3 --set stage=2 --set defect=lost_hook",
        "explore two_losses --stage 2 --quirks h4 --budget 20x --no-minimize"}) {
    const CommandResult run =
        zeroproof(words + " --progress none --sarif " + (scratch / "e.sarif"));
    EXPECT_EQ(1, run.exit_code) << words << run.err;
    const Json log = Json::parse(read_file(scratch / "e.sarif"));
    EXPECT_FALSE(log["runs"][0]["results"].empty()) << words;
  }
  EXPECT_EQ(2, zeroproof("list --sarif " + (scratch / "x")).exit_code);
}

TEST(Annotations, Are_there_when_github_runs_the_command) {
  const ScratchFolder scratch;
  const std::string command = ZP_BINARY " explore S2 --policy deepspeed-0.18.3 --progress none";
  const std::string github =
      "GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=" + (scratch / "summary.md") + " ";
  const CommandResult plain = run_shell("env -u GITHUB_ACTIONS " + command);
  EXPECT_EQ("", plain.err);
  const CommandResult run = run_shell(github + command);
  EXPECT_EQ(plain.out, run.out) << "stdout is the result, everywhere";
  EXPECT_EQ(0U, run.err.find("::error file=props/scenarios/S2.json,line=1,title=P2 "
                             "epilogue.once_after_last_hook::"))
      << run.err;
  EXPECT_NE(std::string::npos, read_file(scratch / "summary.md").find("| P2 epilogue"));
  EXPECT_EQ("", run_shell(github + command + " --annotations none").err);
  EXPECT_EQ(run.err, run_shell("env -u GITHUB_ACTIONS " + command + " --annotations github").err);
}

TEST(Show, Makes_pages_and_charts) {
  const ScratchFolder scratch;
  const std::string page = zeroproof("show " + kRetained + " --html").out;
  EXPECT_EQ(0U, page.find("<!doctype html>"));
  const CommandResult written = zeroproof("show " + kRetained + " --html --out " + (scratch / "p"));
  EXPECT_EQ(0, written.exit_code) << written.err;
  EXPECT_EQ(page, read_file(scratch / "p")) << "the same bytes";
  EXPECT_NE(std::string::npos, written.out.find("747 events, 9 findings"));
  EXPECT_EQ(0U, zeroproof("show " + kRetained + " --svg").out.find("<svg "));
  EXPECT_EQ(2, zeroproof("show " + kRetained + " --svg --html").exit_code);
  EXPECT_EQ(5, zeroproof("show /does/not/exist --html").exit_code);
}

TEST(Show, Merges_the_ranks_of_a_run) {
  const std::string run = bundled("deepspeed-edaa7221-cuda/mlp__z3_fp32_w2_r");
  const CommandResult result =
      zeroproof("show --from 20 --to 40 " + run + "0.jsonl.gz " + run + "1.jsonl.gz");
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_NE(std::string::npos, result.out.find("rank 0")) << result.out;
  const std::size_t issued = result.out.rfind("\n    37  ");
  const std::size_t complete = result.out.find("\n    38  ");
  ASSERT_NE(std::string::npos, complete) << result.out;
  EXPECT_LT(issued, complete) << "no rank is done before all have begun\n" << result.out;
}

TEST(Show, Says_what_a_truncated_trace_held) {
  const ScratchFolder scratch;
  run_shell("zcat " + kRetained + " | head -300 > " + (scratch / "cut.jsonl"));
  const CommandResult result =
      zeroproof("show " + (scratch / "cut.jsonl") + " --html --out " + (scratch / "cut.html"));
  EXPECT_EQ(5, result.exit_code);
  EXPECT_EQ(0U, read_file(scratch / "cut.html").find("<!doctype html>"));
}

TEST(Explore, Draws_its_findings_into_the_folder) {
  const ScratchFolder scratch;
  zeroproof("explore S2 --policy deepspeed-0.18.3 --out " + (scratch / "o"));
  for (const std::string number : {"P2", "P7"}) {
    const std::string base = scratch / ("o/S2-deepspeed-0.18.3-" + number);
    EXPECT_EQ(0U, read_file(base + ".svg").find("<svg "));
    EXPECT_EQ(0U, read_file(base + ".html").find("<!doctype html>"));
  }
}

}  // namespace
}  // namespace zeroproof::cli_test
