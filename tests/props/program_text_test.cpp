#include "props/program/program_text.h"

#include <gtest/gtest.h>

#include "props/program/program_json.h"
#include "tests/read_file.h"

namespace zeroproof::program {
namespace {

Program program_in(const std::string& name) {
  const std::string path = ZP_SOURCE_DIR "/tests/data/programs/" + name;
  auto program = parse_program(read_file(path), path);
  EXPECT_TRUE(program) << program.error().text;
  return program ? *program : Program();
}

std::string text_in(const std::string& name) {
  return read_file(ZP_SOURCE_DIR "/tests/data/programs/" + name);
}

TEST(ProgramText, ShowsEachKind) {
  EXPECT_EQ(program_text(program_in("every_kind.json")), text_in("every_kind.txt"));
}

// What stands between ```LANGUAGE and ```, the first time on the page.
std::string block_of_page(const std::string& language) {
  const std::string page = read_file(ZP_SOURCE_DIR "/docs/reference/program.md");
  const std::string before = "```" + language + "\n";
  const std::size_t begin = page.find(before) + before.size();
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST(ProgramText, IsWhatTheReferenceShows) {
  const auto program = parse_program(block_of_page("json"), "docs/reference/program.md");
  ASSERT_TRUE(program) << program.error().text;
  const auto contract = Contract::of(*program);
  ASSERT_TRUE(contract) << contract.error().text;
  EXPECT_EQ(program_text(*program, &*contract), block_of_page("text"));
}

// Of an engine that no configuration of stage 4 makes.
TEST(ProgramText, ShowsARefusalWithoutAName) {
  const auto program = parse_program(R"({
    "schema": "zeroproof.program/1",
    "models": [{"name": "m", "body": [{"name": "l0", "linear": {"inputs": 1, "outputs": 2}}]}],
    "engines": [{"name": "a", "model": "m"}],
    "body": [{"try_config": {"engine": "a", "key": "/zero_optimization/stage", "value": "4"}}]})",
                                     "here");
  ASSERT_TRUE(program) << program.error().text;
  const auto contract = Contract::of(*program);
  ASSERT_TRUE(contract) << contract.error().text;
  const std::string text = program_text(*program, &*contract);
  EXPECT_EQ(text.substr(text.find("a.try_config")),
            "a.try_config(\"/zero_optimization/stage\", \"4\") # refused\n");
}

TEST(ProgramText, ShowsTheSettingsThatDifferFromDefaults) {
  Program program;
  EXPECT_EQ(program_text(program), "1 rank, stage 0\n");
  program.world.ranks = 2;
  program.config.stage = 3;
  program.config.overlap_comm = false;
  program.config.offload_optimizer = OffloadDevice::cpu;
  program.config.fp16 = {.enabled = true, .loss_scale = 8.0};
  program.config.optimizer.adam.lr = 0.5;
  EXPECT_EQ(
      program_text(program),
      "2 ranks, stage 3, fp16, fp16.loss_scale 8.0, optimizer.lr 0.5, offload_optimizer cpu,\n"
      "    overlap_comm false\n");
}

}  // namespace
}  // namespace zeroproof::program
