// train --model.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"
#include "tests/read_file.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

TEST(TrainModel, Prints_the_loss_of_every_step_and_both_comparisons) {
  const CommandResult result = zeroproof(
      "train --model tiny --stage 3 --batch 1 --length 4 --steps 2 --check-baseline --seed 5");
  EXPECT_EQ(0, result.exit_code) << result.out;
  for (const char* line :
       {"seed 5\n", "equal  tiny stage 3, 2 ranks, float32, batches of 1 x 4 tokens a rank\n",
        "  step 0: loss 6.", "  step 1: loss 6.",
        "  beside the unsharded run, rank by rank: bitwise equal\n",
        "  beside the unsharded run on the concatenated batch: losses within "})
    EXPECT_NE(std::string::npos, result.out.find(line)) << line << result.out;
}

TEST(TrainModel, Repeats_byte_for_byte_and_follows_its_seed) {
  const std::string call = "train --model tiny --batch 1 --length 4 --steps 1 --json --seed ";
  EXPECT_EQ(zeroproof(call + "1").out, zeroproof(call + "1").out);
  EXPECT_NE(Json::parse(zeroproof(call + "1").out)["losses"],
            Json::parse(zeroproof(call + "2").out)["losses"]);
}

TEST(TrainModel, Has_as_many_layers_as_it_is_told) {
  const std::string call = "train --model tiny --batch 1 --length 4 --steps 2 --stage 2";
  const Json two = Json::parse(zeroproof(call + " --json").out);
  const Json same = Json::parse(zeroproof(call + " --json --layers 2").out);
  const Json three = Json::parse(zeroproof(call + " --json --layers 3").out);
  EXPECT_EQ(two, same);
  EXPECT_LT(two["peak_bytes"], three["peak_bytes"]);
  EXPECT_EQ(0, zeroproof(call + " --layers 3 --check-baseline").exit_code);
}

TEST(TrainModel, Writes_what_another_program_needs_to_train_the_same) {
  const ScratchFolder scratch;
  const std::string call = "train --model tiny --batch 1 --length 4 --steps 1 --save-initial ";
  ASSERT_EQ(0, zeroproof(call + (scratch / "a.safetensors")).exit_code);
  ASSERT_EQ(0, zeroproof(call + (scratch / "b.safetensors") + " --stage 3").exit_code);
  EXPECT_EQ(read_file(scratch / "a.safetensors"), read_file(scratch / "b.safetensors"));
  const CommandResult nowhere = zeroproof(call + (scratch / "none/a.safetensors"));
  EXPECT_EQ(2, nowhere.exit_code);
  EXPECT_NE(std::string::npos, nowhere.err.find("none/a.safetensors")) << nowhere.err;
}

TEST(TrainModel, Prints_times_only_when_asked) {
  const std::string call = "train --model tiny --batch 1 --length 4 --steps 2 --json";
  EXPECT_FALSE(Json::parse(zeroproof(call).out).contains("iteration_ms"));
  const Json timed = Json::parse(zeroproof(call + " --time --warmup 1").out);
  EXPECT_EQ(1, timed["iteration_ms"]["steps"]);
}

TEST(TrainModel, Writes_traces_that_replay_judges) {
  const ScratchFolder scratch;
  for (const char* stage : {"1", "2", "3"}) {
    const std::string call = std::string("train --model tiny --batch 1 --length 4 --steps 1") +
                             " --stage " + stage + " --trace " + (scratch / "run.jsonl.gz");
    EXPECT_EQ(0, zeroproof(call).exit_code) << stage;
    const CommandResult replayed = zeroproof("replay --json " + (scratch / "run_r0.jsonl.gz") +
                                             " " + (scratch / "run_r1.jsonl.gz"));
    EXPECT_EQ(0, replayed.exit_code) << replayed.out;
    EXPECT_EQ(2, Json::parse(replayed.out)["summary"]["ok"]) << replayed.out;
  }
}

TEST(TrainModel, Refuses_what_does_not_go_together) {
  const std::pair<const char*, const char*> cases[] = {
      {"--model m267", "--runtime cuda"},
      {"--model tiny --scenario plain", "--scenario"},
      {"--model tiny --matrix full", "--matrix"},
      {"--model tiny --backward tensor", "--backward"},
      {"--model tiny --runtime sim", "--runtime sim"},
      {"--model tiny --dtype fp16", "float32 or bf16"},
      {"--model tiny --batch 0", "--batch 0"},
      {"--model tiny --warmup 1", "needs --time"},
      {"--model tiny --time --warmup 3", "fewer than the 3 steps"},
      {"--length 4", "only with --model"},
      {"--layers 4", "only with --model"},
      {"--save-initial x", "only with --model"},
      {"--model tiny --layers 0", "--layers 0"},
      {"--model tiny --no-collectives", "needs --time"},
      {"--model tiny --no-collectives --time", "--runtime cuda"},
      {"--model tiny --collectives nccl", "--runtime cuda"},
      {"--cuda-graph", "only with --model"},
      {"--model tiny --cuda-graph", "give --runtime cuda"},
      {"--model small", "tiny"},
  };
  for (const auto& [flags, text] : cases) {
    const CommandResult result = zeroproof(std::string("train ") + flags);
    EXPECT_EQ(2, result.exit_code) << flags << result.err;
    EXPECT_NE(std::string::npos, result.err.find(text)) << flags << ": " << result.err;
  }
}

}  // namespace
}  // namespace zeroproof::cli_test
