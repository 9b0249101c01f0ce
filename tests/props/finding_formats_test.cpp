// SARIF and annotations: the forms of findings that other tools read.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "props/replay/replay.h"
#include "props/report/annotations.h"
#include "props/report/replay_findings.h"
#include "props/report/sarif.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

LocatedFindings two_findings() {
  LocatedFinding broken{.rule = "epilogue.once_after_last_hook",
                        .number = "P2",
                        .statement = "the epilogue runs after the last gradient hook",
                        .source = "#7665",
                        .text = "100% wrong,\nreally: yes"};
  broken.subject = "S2 deepspeed-0.18.3";
  broken.file = "props/scenarios/S 2.json";
  broken.reproduce = "replay zps1:S2:x";
  LocatedFinding latent{.rule = "state.queued_flag_is_backed", .number = "P8", .text = "stale"};
  latent.level = FindingLevel::warning;
  latent.file = "/tmp/a,b:c.jsonl";
  latent.line = 12;
  latent.rank = 1;
  latent.lc = 7;
  return {broken, latent, broken};
}

TEST(Annotations, Escape_as_the_runner_decodes) {
  EXPECT_EQ(github_annotations(two_findings()),
            "::error file=props/scenarios/S 2.json,line=1,title=P2 epilogue.once_after_last_hook"
            "::S2 deepspeed-0.18.3: 100%25 wrong,\\x0areally: yes%0Areproduce: zeroproof replay "
            "zps1:S2:x\n"
            "::warning file=/tmp/a%2Cb%3Ac.jsonl,line=12,title=P8 state.queued_flag_is_backed"
            "::stale\n"
            "::error file=props/scenarios/S 2.json,line=1,title=P2 epilogue.once_after_last_hook"
            "::S2 deepspeed-0.18.3: 100%25 wrong,\\x0areally: yes%0Areproduce: zeroproof replay "
            "zps1:S2:x\n");
  EXPECT_EQ(github_annotations({}), "");
}

TEST(Annotations, Have_a_summary_that_a_name_cannot_break) {
  LocatedFinding finding{.rule = "a", .text = "one | two <b> `x`"};
  finding.subject = "S|1";
  EXPECT_EQ(github_summary("zeroproof replay", {finding}),
            "### zeroproof replay\n\n| rule | where | what |\n|---|---|---|\n"
            "| a | S\\|1 | one \\| two &lt;b> \\`x\\` |\n");
  EXPECT_NE(github_summary("zeroproof replay", {}).find("No rule is broken."), std::string::npos);
}

TEST(Sarif, Is_this_for_two_rules) {
  const Json log = Json::parse(sarif_text("zeroproof explore", "1.2", two_findings()));
  EXPECT_EQ(log["version"], "2.1.0");
  ASSERT_EQ(log["runs"].size(), 1U);
  const Json& run = log["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["name"], "zeroproof");
  EXPECT_EQ(run["tool"]["driver"]["version"], "1.2");
  ASSERT_EQ(run["tool"]["driver"]["rules"].size(), 2U) << "a rule once, however often it is broken";
  ASSERT_EQ(run["results"].size(), 3U);
  const Json first = Json::parse(R"({
    "ruleId": "epilogue.once_after_last_hook", "ruleIndex": 0, "level": "error",
    "message": {"text": "100% wrong,\\x0areally: yes"},
    "locations": [{"physicalLocation": {
        "artifactLocation": {"uri": "props/scenarios/S%202.json"}, "region": {"startLine": 1}},
      "logicalLocations": [{"fullyQualifiedName": "S2 deepspeed-0.18.3"}]}],
    "partialFingerprints": {
      "zeroproofFinding/v1": "epilogue.once_after_last_hook S2 deepspeed-0.18.3 -1 0"},
    "properties": {"reproduce": "zeroproof replay zps1:S2:x"}})");
  EXPECT_EQ(run["results"][0], first) << run["results"][0].dump(1);
  const Json& second = run["results"][1];
  EXPECT_EQ(second["level"], "warning");
  EXPECT_EQ(second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "file:///tmp/a%2Cb%3Ac.jsonl");
  EXPECT_EQ(second["locations"][0]["physicalLocation"]["region"]["startLine"], 12);
  EXPECT_EQ(second["properties"], (Json{{"lc", 7}, {"rank", 1}}));
  const Json empty = Json::parse(sarif_text("zeroproof verify", "1", {}));
  EXPECT_EQ(empty["runs"][0]["results"], Json::array()) << "nothing found is a result, too";
}

TEST(Findings, Of_a_trace_know_the_lines_of_their_events) {
  Replay replay({});
  const std::string path = ZP_SOURCE_DIR
      "/tests/traces/deepspeed-edaa7221-cuda/two_losses_retain__z1_fp32_w1_r0.jsonl.gz";
  ASSERT_TRUE(replay.add(path));
  LocatedFindings findings = located_findings(replay.finish());
  ASSERT_FALSE(findings.empty());
  find_lines(findings);
  EXPECT_EQ(findings[0].number, "P28");
  EXPECT_EQ(findings[0].lc, 226U);
  EXPECT_EQ(findings[0].line, 243U) << "zcat | sed -n 243p has lc 226";
  EXPECT_EQ(findings[0].file, path);
}

TEST(Findings, Of_a_trace_that_is_none_say_so) {
  Replay replay({});
  ASSERT_TRUE(replay.add("/does/not/exist.jsonl"));
  const LocatedFindings findings = located_findings(replay.finish());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "trace.readable");
  EXPECT_EQ(findings[0].level, FindingLevel::error);
}

}  // namespace
}  // namespace zeroproof
