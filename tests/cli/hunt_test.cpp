// `zeroproof hunt` on a subject that needs no PyTorch (tests/data/subject/fake_subject.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kFake = " --python " ZP_SOURCE_DIR "/tests/data/subject/fake_subject.py";

CommandResult hunt(const std::string& engine, const std::string& more) {
  return zeroproof("hunt --progress none --seed 5 --engine " + engine + kFake + " " + more);
}

json document_of(const CommandResult& result) {
  const json document = json::parse(result.out, nullptr, false);
  EXPECT_TRUE(document.is_object()) << result.out << result.err;
  return document;
}

std::vector<fs::path> files_in(const std::string& folder, const std::string& end) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool is_search = entry.path().filename().string().starts_with("search-");
    if (!is_search && entry.path().string().ends_with(end)) files.push_back(entry.path());
  }
  return files;
}

TEST(Hunt, Holds_where_every_program_is_equal) {
  const CommandResult result = hunt("equal", "--budget 12x --json");
  EXPECT_EQ(0, result.exit_code) << result.err;
  const json document = document_of(result);
  EXPECT_EQ("zeroproof.hunt/1", document["schema"]);
  EXPECT_EQ(12, document["cases"]);
  EXPECT_EQ(12, document["statuses"]["equal"]);
  EXPECT_EQ("fake 1.0", document["versions"]);
  EXPECT_TRUE(document["findings"].empty());
}

TEST(Hunt, Makes_a_finding_small_and_says_how_to_see_it_again) {
  const CommandResult result = hunt("differs", "--budget 60x --json");
  ASSERT_EQ(1, result.exit_code) << result.err;
  const json document = document_of(result);
  ASSERT_EQ(1U, document["findings"].size());
  const json& finding = document["findings"][0];
  EXPECT_EQ("gradients at step", finding["verdict"]["signature"]);
  EXPECT_EQ(3, finding["same_runs"]);
  EXPECT_GT(finding["statements_before"], 4);
  EXPECT_EQ(2U, finding["program"]["body"].size()) << finding["program"];
  EXPECT_GT(finding["cases"], 1);
  // The command of its last line draws the case again.
  const CommandResult again =
      zeroproof(finding["reproduce"].get<std::string>() + " --json --progress none");
  EXPECT_EQ(1, again.exit_code) << again.err;
  EXPECT_EQ(finding["program"], document_of(again)["findings"][0]["program"]);
}

TEST(Hunt, Shows_programs_as_text_with_what_was_seen) {
  const std::string text = hunt("differs", "--budget 60x").out;
  for (const char* part :
       {"seed 5\n", "hunt differs: fake 1.0\n", "FALSIFIED gradients at step (new)\n",
        "gradients: m.l0.weight is [0], not [2]\n", "differs: fake 1.0\n", "3 of 3 runs",
        "a.zero_grad()\na.step()\n", "reproduce: "})
    EXPECT_NE(std::string::npos, text.find(part)) << part << "\n" << text;
}

TEST(Hunt, Says_what_is_known_and_does_not_spend_runs_on_it) {
  const CommandResult result = hunt("known", "--budget 60x --json");
  EXPECT_EQ(1, result.exit_code);
  const json document = document_of(result);
  const json& finding = document["findings"][0];
  EXPECT_EQ("lost gradients", finding["verdict"]["signature"]);
  EXPECT_EQ("DeepSpeed #7992", finding["verdict"]["known"]["issue"]);
  EXPECT_EQ(62, document["runs"]);
  EXPECT_NE(std::string::npos,
            hunt("known", "--budget 60x").out.find("(known: H4, DeepSpeed #7992, defect)"));
  EXPECT_EQ(0, hunt("known", "--budget 60x --accept-known").exit_code);
}

// An unknown cause is not hidden by a known one with its signature, nor made small into it.
TEST(Hunt, Tells_a_new_cause_from_a_known_one_of_its_signature) {
  const json findings = document_of(hunt("doubtful", "--budget 60x --json"))["findings"];
  ASSERT_EQ(2U, findings.size());
  int known = 0;
  for (const json& finding : findings) {
    const bool keeps_graphs = finding["program"].dump().find("retain_graph") != std::string::npos;
    EXPECT_EQ("lost gradients", finding["verdict"]["signature"]);
    EXPECT_EQ(keeps_graphs, finding["verdict"].contains("known"));
    known += keeps_graphs ? 1 : 0;
  }
  EXPECT_EQ(1, known);
}

// The name that a drawn program gives a finding is not that of its cause.
TEST(Hunt, Names_a_known_finding_by_its_small_program) {
  const json known = document_of(hunt("known", "--budget 60x --minimize-known --json"));
  ASSERT_EQ(1U, known["findings"].size());
  EXPECT_EQ("H4", known["findings"][0]["verdict"]["known"]["name"]);
  EXPECT_EQ(2U, known["findings"][0]["program"]["body"].size());
  // No small program keeps a graph, so no finding is of kept graphs.
  const json renamed = document_of(hunt("doubtful", "--budget 60x --minimize-known --json"));
  ASSERT_EQ(1U, renamed["findings"].size()) << renamed["findings"];
  EXPECT_FALSE(renamed["findings"][0]["verdict"].contains("known"));
  EXPECT_EQ(2U, renamed["findings"][0]["program"]["body"].size());
}

// Known findings hide no other: what may show them does not run, and does not count as a case.
TEST(Hunt, Skips_programs_that_may_show_what_is_known) {
  const CommandResult result = hunt("skips", "--budget 60x --skip-known --json");
  EXPECT_EQ(0, result.exit_code) << result.out << result.err;
  const json document = document_of(result);
  EXPECT_EQ(60, document["cases"]);
  EXPECT_EQ(60, document["runs"]);
  EXPECT_GT(document["may_show"]["H4"], 0);
  EXPECT_TRUE(document["findings"].empty());
  EXPECT_NE(std::string::npos, hunt("skips", "--budget 60x --skip-known")
                                   .out.find(" skipped, which may show what is known: "));
  EXPECT_EQ(1, hunt("skips", "--budget 60x").exit_code);
}

TEST(Hunt, Says_what_comes_and_goes) {
  const CommandResult result = hunt("flaky", "--budget 40x");
  EXPECT_EQ(1, result.exit_code);
  EXPECT_NE(std::string::npos, result.out.find("FLAKY: ")) << result.out;
}

// A dead subject is started again for each program.
TEST(Hunt, Names_a_dead_subject_with_its_last_words) {
  const CommandResult result = hunt("dies", "--budget 20x --shrink 5x --json");
  ASSERT_EQ(1, result.exit_code) << result.err;
  const json document = document_of(result);
  EXPECT_EQ(20, document["cases"]);
  const json& verdict = document["findings"][0]["verdict"];
  EXPECT_EQ("crash of the subject, exit code 9", verdict["signature"]);
  EXPECT_EQ("the subject ended: exit code 9; it printed: Fatal: out of patience",
            verdict["difference"]["text"]);
}

TEST(Hunt, Calls_a_silent_subject_a_hang) {
  const CommandResult result = hunt("hangs", "--budget 8x --no-minimize --answer-limit 1s --json");
  ASSERT_EQ(1, result.exit_code) << result.err;
  const json document = document_of(result);
  EXPECT_EQ(8, document["cases"]);
  EXPECT_GE(document["hangs"], 3);
  EXPECT_EQ("hang of the subject", document["findings"][0]["verdict"]["signature"]);
}

struct Unusable {
  const char* engine;
  const char* text;
};

TEST(Hunt, Refuses_what_does_not_speak_the_protocol) {
  for (const auto& [engine, text] :
       {Unusable{"garbage", "answered no JSON object: Warning: no line of the protocol"},
        Unusable{"newer", "it speaks version 2 of the protocol, zeroproof version 1"},
        Unusable{"missing", "exit code 1; it printed: ModuleNotFoundError"}}) {
    const CommandResult result = hunt(engine, "--budget 5x");
    EXPECT_EQ(77, result.exit_code) << engine;
    EXPECT_NE(std::string::npos, result.err.find(text)) << engine << "\n" << result.err;
  }
  const CommandResult none = zeroproof("hunt --engine ddp --python /no/such/python");
  EXPECT_EQ(77, none.exit_code);
  EXPECT_NE(std::string::npos, none.err.find("/no/such/python: cannot be started")) << none.err;
}

TEST(Hunt, Ends_where_the_subject_refuses_every_program) {
  const CommandResult result = hunt("refuses", "--budget 400x --json");
  EXPECT_EQ(77, result.exit_code);
  EXPECT_EQ(20, document_of(result)["skipped"]["refused: no program: KeyError('x')"]);
  EXPECT_NE(std::string::npos, result.err.find("refused 20 programs in a row: no program"));
}

TEST(Hunt, Goes_on_from_its_folder) {
  const ScratchFolder scratch;
  const std::string corpus = "--corpus " + (scratch / "found") + " --json";
  const json first = document_of(hunt("differs", "--budget 30x " + corpus));
  const json second = document_of(hunt("differs", "--budget 10x " + corpus));
  EXPECT_EQ(30, first["cases"]);
  EXPECT_EQ(10, second["cases"]);
  std::uint64_t total = 0;
  for (const auto& [status, count] : second["total"].items()) total += count.get<std::uint64_t>();
  EXPECT_EQ(40U, total);
  ASSERT_EQ(1U, files_in(scratch / "found", ".json").size());
  // The known finding is not minimised a second time.
  EXPECT_EQ(10, second["runs"]);
  const json whole = document_of(hunt("differs", "--budget 40x --json"));
  EXPECT_EQ(whole["findings"][0]["cases"], second["findings"].empty()
                                               ? first["findings"][0]["cases"]
                                               : second["findings"][0]["cases"]);
}

TEST(Hunt, Runs_findings_of_a_folder_again) {
  const ScratchFolder scratch;
  const std::string folder = scratch / "found";
  const json found = document_of(hunt("differs", "--budget 40x --json --corpus " + folder));
  const std::string reproduce = found["findings"][0]["reproduce"];
  EXPECT_TRUE(reproduce.starts_with("hunt --replay " + folder)) << reproduce;
  const CommandResult same = zeroproof(reproduce);
  EXPECT_EQ(1, same.exit_code) << same.err;
  EXPECT_NE(std::string::npos, same.out.find("now fake 1.0: as before in 3 of 3 runs"));
  const CommandResult mended =
      zeroproof("hunt --replay " + folder + " --engine equal --json" + kFake);
  EXPECT_EQ(0, mended.exit_code) << mended.err;
  const json document = document_of(mended);
  EXPECT_EQ("zeroproof.hunt_replay/1", document["schema"]);
  EXPECT_EQ("equal", document["findings"][0]["verdict"]["status"]);
}

// Two shards have each other's cases; together they are the hunt of one.
TEST(Hunt, Splits_cases_into_shards_and_merges_folders) {
  const ScratchFolder scratch;
  const json whole = document_of(hunt("differs", "--budget 40x --json"));
  std::uint64_t sum = 0;
  for (const std::string shard : {"0", "1"}) {
    const json part = document_of(hunt("differs", "--budget 20x --json --shards 2 --shard-index " +
                                                      shard + " --corpus " + (scratch / shard)));
    ASSERT_EQ(1U, part["findings"].size());
    sum += part["findings"][0]["cases"].get<std::uint64_t>();
  }
  const std::string merge = "hunt --merge " + (scratch / "0") + " --merge " + (scratch / "1") +
                            " --json --corpus " + (scratch / "all");
  for (int i = 0; i < 2; ++i) {  // what is merged twice counts once
    const CommandResult merged = zeroproof(merge);
    EXPECT_EQ(1, merged.exit_code) << merged.err;
    const json document = document_of(merged);
    ASSERT_EQ(1U, document["findings"].size());
    EXPECT_EQ(sum, document["findings"][0]["cases"]);
    EXPECT_EQ(whole["findings"][0]["program"], document["findings"][0]["program"]);
  }
  EXPECT_EQ(1U, files_in(scratch / "all", ".json").size());
  EXPECT_EQ(2, hunt("differs", "--shards 2 --shard-index 2").exit_code);
}

TEST(Hunt, Writes_reports_for_other_tools) {
  const ScratchFolder scratch;
  const CommandResult result =
      hunt("differs", "--budget 40x --out " + (scratch / "out") + " --junit " +
                          (scratch / "junit.xml") + " --sarif " + (scratch / "found.sarif"));
  ASSERT_EQ(1, result.exit_code) << result.err;
  const auto issues = files_in(scratch / "out", ".issue.md");
  ASSERT_EQ(1U, issues.size());
  std::string base = issues.front().string();
  base.resize(base.size() - std::string(".issue.md").size());
  for (const char* end : {".json", ".program.json", ".html", ".svg", ".perfetto.json"})
    EXPECT_GT(fs::file_size(base + end), 0U) << end;
  EXPECT_EQ("# a script of differs\n", read_file(base + ".py"));
  const std::string issue = read_file(issues.front());
  for (const char* part :
       {"- fake 1.0\n", "a.step()", "not [2]", "statement `/1/step`", "hunt --replay "})
    EXPECT_NE(std::string::npos, issue.find(part)) << part << "\n" << issue;
  EXPECT_NE(
      std::string::npos,
      read_file(scratch / "junit.xml").find("<failure message=\"FALSIFIED gradients at step"));
  EXPECT_NE(std::string::npos,
            read_file(scratch / "found.sarif").find("subject.gradients-at-step"));
  EXPECT_TRUE(fs::exists(scratch / "out/hunt.json"));
}

// The subject and its children are gone, and what was found is kept.
TEST(Hunt, Ends_at_once_when_interrupted) {
  const ScratchFolder scratch;
  const std::string line = "FAKE_SUBJECT_PID_FILE=" + (scratch / "pid") +
                           " " ZP_BINARY " hunt --engine hangs --seed 5 --json --progress none" +
                           kFake + " --corpus " + (scratch / "found") + " & hunt=$!\n" +
                           "while ! [ -s " + (scratch / "pid") + " ]; do sleep 0.1; done\n" +
                           "sleep 1; kill -INT $hunt; wait $hunt; code=$?\n" + "kill -0 $(cat " +
                           (scratch / "pid") + ") && code=1\nexit $code";
  const CommandResult result = run_shell(line);
  EXPECT_EQ(130, result.exit_code) << result.err;
  EXPECT_EQ("zeroproof.hunt/1", document_of(result)["schema"]);
  EXPECT_FALSE(fs::is_empty(scratch / "found"));
}

TEST(Hunt, Wants_an_engine) {
  const CommandResult result = zeroproof("hunt");
  EXPECT_EQ(2, result.exit_code);
  EXPECT_NE(std::string::npos, result.err.find("say which engine: --engine")) << result.err;
}

}  // namespace
}  // namespace zeroproof::cli_test
