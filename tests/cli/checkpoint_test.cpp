// zeroproof checkpoint: inspect, verify and convert on the machine's own file system.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "engine/files/posix_file_system.h"
#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A weight of [2, 3] with Adam's states, saved whole after seven steps.
void save_small(const std::string& folder) {
  TrainingState state{.parameters = {{"fc.weight", {2, 3}, {1, 2, 3, 4, 5, 6}}},
                      .optimizer_state = {{"fc.weight/exp_avg", {2, 3}, {6, 5, 4, 3, 2, 1}},
                                          {"fc.weight/step", {}, {7}}},
                      .groups = {{.parameters = {"fc.weight"}, .hyper_parameters = {{"lr", 0.5}}}},
                      .counters = {.micro_steps = 14, .global_steps = 7}};
  const auto saved = save_checkpoint(state, posix_file_system(), folder);
  ASSERT_TRUE(saved) << saved.error().text;
}

TEST(CheckpointVerb, Says_what_a_checkpoint_holds) {
  const ScratchFolder scratch;
  save_small(scratch / "run");
  const CommandResult text = zeroproof("checkpoint inspect " + (scratch / "run"));
  EXPECT_EQ(0, text.exit_code) << text.err;
  for (const char* part : {"universal", "fc.weight", "exp_avg", "[2, 3]", "float32", "7 of the"})
    EXPECT_THAT(text.out, HasSubstr(part));
  for (const std::string folder : {"run", "run/global_step7"}) {
    const CommandResult result = zeroproof("checkpoint inspect --json " + (scratch / folder));
    ASSERT_EQ(0, result.exit_code) << result.err;
    const auto document = nlohmann::json::parse(result.out);
    EXPECT_EQ("zeroproof.checkpoint_inspect/1", document["schema"]);
    EXPECT_EQ("universal", document["layout"]);
    EXPECT_EQ(nullptr, document["data_parallel_size"]);
    EXPECT_EQ(1, document["tensor_parallel_size"]);
    EXPECT_EQ(7, document["global_steps"]);
    EXPECT_EQ(nlohmann::json({7}), document["optimizer_steps"]);
    EXPECT_EQ(6, document["elements"]);
    ASSERT_EQ(3U, document["tensors"].size());
    EXPECT_EQ(nlohmann::json({2, 3}), document["tensors"][0]["shape"]);
    EXPECT_EQ("float32", document["tensors"][0]["dtype"]);
  }
}

TEST(CheckpointVerb, Names_damaged_files_and_returns_1) {
  const ScratchFolder scratch;
  save_small(scratch / "run");
  const CommandResult whole = zeroproof("checkpoint verify " + (scratch / "run"));
  EXPECT_EQ(0, whole.exit_code);
  EXPECT_THAT(whole.err, HasSubstr("checkpoint verify  0 MB  took 00:00\nnext: "));
  const std::string folder = scratch / "run/global_step7/zero/fc.weight/";
  std::filesystem::remove(folder + "exp_avg.tensor");
  std::filesystem::resize_file(folder + "fp32.tensor", 20);
  const CommandResult text = zeroproof("checkpoint verify " + (scratch / "run"));
  EXPECT_EQ(1, text.exit_code);
  EXPECT_THAT(text.out, HasSubstr("exp_avg.tensor: it is missing\n"));
  EXPECT_THAT(text.out, HasSubstr("fp32.tensor: it has 20 of "));
  EXPECT_THAT(text.out, HasSubstr(", 2 problems\n"));
  const CommandResult report = zeroproof("checkpoint verify --json " + (scratch / "run"));
  EXPECT_EQ(1, report.exit_code);
  const auto document = nlohmann::json::parse(report.out);
  EXPECT_EQ("zeroproof.checkpoint_verify/1", document["schema"]);
  ASSERT_EQ(2U, document["problems"].size());
  EXPECT_EQ("size", document["problems"][0]["kind"]);
  EXPECT_EQ("missing", document["problems"][1]["kind"]);
}

TEST(CheckpointVerb, Converts_there_and_back) {
  const ScratchFolder scratch;
  save_small(scratch / "run");
  const CommandResult there =
      run_shell_in(scratch, "zeroproof checkpoint convert run made --to shards --ranks 4 --json");
  ASSERT_EQ(0, there.exit_code) << there.err;
  const auto document = nlohmann::json::parse(there.out);
  EXPECT_EQ("made/global_step7", document["output"]);
  EXPECT_EQ(4, document["data_parallel_size"]);
  EXPECT_EQ(nullptr, document["tensor_parallel_size"]);
  const CommandResult shown = run_shell_in(scratch, "zeroproof checkpoint inspect made");
  EXPECT_THAT(shown.out, HasSubstr("4 data-parallel ranks saved"));
  const CommandResult back =
      run_shell_in(scratch, "zeroproof checkpoint convert made back --to universal");
  EXPECT_EQ("back/global_step7\n", back.out) << back.err;
  EXPECT_EQ(
      0, run_shell_in(scratch, "diff -r run/global_step7/zero back/global_step7/zero").exit_code);
}

TEST(CheckpointVerb, Refuses_what_it_cannot_do_in_one_line) {
  const ScratchFolder scratch;
  save_small(scratch / "run");
  struct Row {
    const char* words;
    int code;
    const char* text;
  };
  for (const Row& row : std::vector<Row>{
           {"", 2, "name inspect, verify or convert"},
           {"check run", 2, "unknown action 'check'"},
           {"verify", 2, "name one folder"},
           {"verify run run", 2, "name one folder"},
           {"verify run --ranks 3", 2, "are of convert"},
           {"verify run --tensor-ranks 2", 2, "are of convert"},
           {"convert run made --to universal --tensor-ranks 0", 2, "--tensor-ranks 0: give a"},
           {"convert run made --to universal --tensor-ranks 2", 2, "no partition rule says how"},
           {"verify nowhere", 5, "nowhere/latest: cannot be read"},
           {"inspect run --tag step9", 5, "has no checkpoint 'step9'"},
           {"inspect run/global_step7/zero", 5, "cannot be read"},
           {"convert run", 2, "name a folder to read and one to write"},
           {"convert run made", 2, "name --to universal or --to shards"},
           {"convert run made --to shards", 2, "needs --ranks N"},
           {"convert run made --to shards --ranks 0", 2, "from 1 to 65536"},
           {"convert run made --to universal --ranks 2", 2, "--ranks is of --to shards"},
           {"convert run run --to universal", 2, "holds a checkpoint already"},
           {"convert run /proc/none --to universal", 2, "cannot be written"},
           {"convert nowhere made --to universal", 5, "nowhere/latest: cannot be read"}}) {
    SCOPED_TRACE(row.words);
    const CommandResult result =
        run_shell_in(scratch, std::string("zeroproof checkpoint ") + row.words);
    EXPECT_EQ(row.code, result.exit_code) << result.err;
    EXPECT_EQ("", result.out);
    EXPECT_THAT(result.err, StartsWith("zeroproof: "));
    EXPECT_THAT(result.err, HasSubstr(row.text));
    EXPECT_EQ(1, std::ranges::count(result.err, '\n'));
    EXPECT_FALSE(std::filesystem::exists(scratch / "made/latest"));
  }
}

TEST(CheckpointVerb, That_cannot_write_leaves_nothing) {
  const ScratchFolder scratch;
  TrainingState state{.parameters = {{"w", {1 << 18}, std::vector<double>(1 << 18, 1.5)}},
                      .optimizer_state = {}};
  ASSERT_TRUE(save_checkpoint(state, posix_file_system(), scratch / "run"));
  const CommandResult result = run_shell_in(
      scratch,
      "(trap '' XFSZ; ulimit -f 64; zeroproof checkpoint convert run made --to shards --ranks 2)");
  EXPECT_EQ(2, result.exit_code) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cannot be written"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "made"));
}

}  // namespace
}  // namespace zeroproof::cli_test
