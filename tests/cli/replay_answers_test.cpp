// What replay answers in words, and export, as a user calls them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

const std::string kDumps = ZP_SOURCE_DIR "/tests/data/dumps/";

TEST(Diagnosis, Is_a_documented_array_in_the_json) {
  const CommandResult result = zeroproof(
      "replay --json " + bundled("deepspeed-edaa7221-cuda/undefined_grad__z2_fp32_w2_r0.jsonl.gz"));
  EXPECT_EQ(1, result.exit_code);
  const Json document = Json::parse(result.out);
  ASSERT_EQ(1U, document["diagnosis"].size());
  const Json& one = document["diagnosis"][0];
  EXPECT_EQ("hook.undefined_gradient", one["kind"]);
  EXPECT_EQ("defect", one["gravity"]);
  EXPECT_EQ("w", one["parameter"]);
  EXPECT_EQ(Json::array({0}), one["ranks"]);
  EXPECT_TRUE(one["last_common"].is_null());
  EXPECT_TRUE(one["order"].back().contains("lc"));
  for (const char* field : {"what", "rule", "look_at", "files", "waits", "collective"})
    EXPECT_TRUE(one.contains(field)) << field;
  EXPECT_EQ("deepspeed", document["traces"][0]["framework"]);
}

TEST(Diagnosis, Says_what_happened_in_the_text) {
  const CommandResult result = zeroproof(
      "replay " + bundled("deepspeed-edaa7221-cuda/two_losses_retain__z1_fp32_w1_r0.jsonl.gz"));
  for (const char* words :
       {"diagnosis\n", "gradients.overwritten on rank 0", "    what      ", "    order     ",
        "    rule      P28 ", "    look at   ", ">> rank 0 lc "})
    EXPECT_NE(std::string::npos, result.out.find(words)) << words << result.out;
}

TEST(Dumps, Of_a_run_are_compared_and_named) {
  const CommandResult result = zeroproof("replay --json " + kDumps + "fr_missing_rank_0.pickle " +
                                         kDumps + "fr_missing_rank_1.pickle");
  EXPECT_EQ(1, result.exit_code) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(2U, document["dumps"]["files"].size());
  EXPECT_EQ(3, document["dumps"]["verdicts"]["FULLY_MATCHED"]);
  EXPECT_EQ("collective.missing", document["diagnosis"][0]["kind"]);
  EXPECT_EQ(Json::array({1}), document["diagnosis"][0]["ranks"]);
}

TEST(Dumps, Of_agreeing_ranks_hold) {
  const CommandResult result =
      zeroproof("replay " + kDumps + "fr_ok_rank_0.json " + kDumps + "fr_ok_rank_1.json");
  EXPECT_EQ(0, result.exit_code) << result.out;
  EXPECT_NE(std::string::npos, result.out.find("2 dumps compared: FULLY_MATCHED 4"));
}

TEST(Dumps, That_are_damaged_get_one_line_and_exit_code_5) {
  const ScratchFolder scratch;
  const std::string path = scratch / "fr_rank_0.pickle";
  write_file(path, read_file(kDumps + "fr_ok_rank_0.pickle").substr(0, 700));
  const CommandResult result = zeroproof("replay " + path);
  EXPECT_EQ(5, result.exit_code);
  EXPECT_NE(std::string::npos, result.out.find("UNREADABLE  " + path + ": "));
  EXPECT_NE(std::string::npos, result.out.find("ends early"));
}

TEST(WhatIf, Of_a_policy_without_a_manager_is_answered) {
  const std::string trace =
      bundled("deepspeed-edaa7221-cuda/ckpt_reentrant_manual__z1_fp32_w2_r0.jsonl.gz");
  const CommandResult lost = zeroproof("replay --json --policy deepspeed-0.18.3 " + trace);
  EXPECT_EQ(1, lost.exit_code) << lost.err;
  const Json report = Json::parse(lost.out)["what_if"][0];
  EXPECT_EQ("deepspeed-0.18.3", report["policy"]);
  EXPECT_GT(report["early_epilogues"], 0);
  EXPECT_FALSE(report["missed"].empty());
  const CommandResult held = zeroproof("replay --policy exact " + trace);
  EXPECT_EQ(0, held.exit_code) << held.out;
  EXPECT_NE(std::string::npos, held.out.find("every gradient would have been reduced"));
}

TEST(Export, Writes_a_checked_script_and_says_how_to_run_it) {
  const ScratchFolder scratch;
  const std::string path = scratch / "s2.py";
  const CommandResult result =
      zeroproof("export --torch S2 --policy deepspeed-0.18.3 --out " + path);
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_NE(std::string::npos, result.out.find("claims P7: "));
  EXPECT_NE(std::string::npos, read_file(path).find("class Model_e(torch.nn.Module):"));
  // Without --out the script itself is the result.
  EXPECT_EQ(
      0U,
      zeroproof("export --torch S2 --policy deepspeed-0.18.3").out.find("#!/usr/bin/env python3"));
}

// Without the framework the script says so and exits with 77, as a test that is skipped does.
TEST(Export, Exits_with_77_where_the_framework_is_missing) {
  const ScratchFolder scratch;
  const std::string path = scratch / "s1.py";
  if (run_shell("python3 -c ''").exit_code != 0) GTEST_SKIP() << "no python3 here";
  if (run_shell("python3 -I -c 'import torch'").exit_code == 0) GTEST_SKIP() << "torch is here";
  ASSERT_EQ(0, zeroproof("export --torch S1 --out " + path).exit_code);
  const CommandResult run = run_shell("python3 -I " + path);
  EXPECT_EQ(77, run.exit_code) << run.err;
  EXPECT_NE(std::string::npos, run.out.find("SKIP: "));
}

// Where PyTorch can be had: the reducer's own complaint, from a script made of a scenario.
TEST(Export, Reproduces_on_pytorch) {
  const std::string python =
      std::getenv("ZP_TORCH_PYTHON") ? std::getenv("ZP_TORCH_PYTHON") : "python3";
  if (run_shell(python + " -c 'import torch'").exit_code != 0)
    GTEST_SKIP() << "no PyTorch: set ZP_TORCH_PYTHON to a python that has it";
  const ScratchFolder scratch;
  const std::string path = scratch / "ddp.py";
  ASSERT_EQ(0, zeroproof("export --torch S2 --framework ddp --find-unused-parameters --out " + path)
                   .exit_code);
  const CommandResult shows = run_shell(python + " " + path);
  EXPECT_EQ(1, shows.exit_code) << shows.out << shows.err;
  EXPECT_NE(std::string::npos, shows.out.find("mark a variable ready only once"));
  ASSERT_EQ(0, zeroproof("export --torch S1 --framework ddp --out " + path).exit_code);
  const CommandResult held = run_shell(python + " " + path);
  EXPECT_EQ(0, held.exit_code) << held.out << held.err;
}

TEST(Export, Refuses_with_one_line) {
  for (const char* words :
       {"S99 --torch", "S2", "S2 --torch --stage 4", "S2 --torch --property P7",
        "S2 --torch --policy deepspeed-0.18.3 --property P3", "S2 S3 --torch",
        "S2 --torch --framework ddp --policy deepspeed-0.18.3", "S2 --torch --gas 0"}) {
    const CommandResult result = zeroproof(std::string("export ") + words);
    EXPECT_EQ(2, result.exit_code) << words << result.err;
    EXPECT_TRUE(result.out.empty()) << words;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << words << result.err;
  }
}

}  // namespace
}  // namespace zeroproof::cli_test
