// After a run that held, one line on stderr says what to try next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NextStep, Is_a_command_that_runs) {
  const ScratchFolder scratch;
  for (const char* words :
       {"explore S2", "explore S2 --policy exact --scheduler fifo",
        "explore hook_order --set N=3 --scheduler fifo", "explore zero_epilogue --set N=3",
        "train --scenario plain --steps 1"}) {
    const CommandResult held = run_shell_in(scratch, std::string("zeroproof ") + words);
    ASSERT_EQ(0, held.exit_code) << words << held.err;
    const auto begin = held.err.find("next: ");
    ASSERT_NE(std::string::npos, begin) << words << held.err;
    EXPECT_EQ(std::string::npos, held.out.find("next: ")) << words;
    std::string next = held.err.substr(begin + 6);
    next = next.substr(0, next.find('\n'));
    if (const auto budget = next.find("30s"); budget != std::string::npos)
      next.replace(budget, 3, "5x");
    const CommandResult run = run_shell_in(scratch, next);
    EXPECT_LT(run.exit_code, 2) << next << "\n" << run.err;
  }
}

TEST(NextStep, Is_left_out_of_documents_failures_and_silence) {
  for (const char* words :
       {"explore S2 --json", "explore S2 --policy deepspeed-0.18.3", "explore S2 --progress none"})
    EXPECT_THAT(zeroproof(words).err, Not(HasSubstr("next: "))) << words;
}

// The flag's name until 0.2.
TEST(OrderModel, Is_also_called_by_its_former_name) {
  for (const char* flag : {"--order-model", "--latitude"}) {
    const CommandResult run = zeroproof(std::string("explore S2 --json ") + flag + " faithful");
    EXPECT_EQ(0, run.exit_code) << run.err;
    EXPECT_THAT(run.out, HasSubstr("\"order_model\": \"faithful\"")) << flag;
    const CommandResult wrong = zeroproof(std::string("explore S2 ") + flag + " wide");
    EXPECT_EQ(2, wrong.exit_code) << flag;
    EXPECT_THAT(wrong.err, HasSubstr("'wide'")) << flag;
  }
  EXPECT_THAT(zeroproof("explore --help").out, Not(HasSubstr("latitude")));
}

}  // namespace
}  // namespace zeroproof::cli_test
