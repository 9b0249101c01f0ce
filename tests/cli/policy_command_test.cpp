// `zeroproof explore --policy-command`: policies in Python, and programs that are none.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

const std::string kPython =
    "PYTHONPATH=" ZP_SOURCE_DIR "/subject:" ZP_SOURCE_DIR
    "/subject/tests PYTHONDONTWRITEBYTECODE=1 python3 -m zeroproof_subject.policy manager_policy:";

std::string with_policy(const std::string& name) {
  return " --policy-command '" + kPython + name + "'";
}

// Each exploration with all that it says but for the name of its policy.
Json explorations_of(const std::string& arguments) {
  const CommandResult result = zeroproof("explore all --json " + arguments);
  Json explorations = Json::parse(result.out, nullptr, false);
  EXPECT_FALSE(explorations.is_discarded()) << result.err;
  if (explorations.is_discarded()) return {};
  explorations = explorations.at("runs");
  for (Json& one : explorations) {
    one.erase("policy");
    for (Json& finding : one["properties"]["falsified"]) finding.erase("schedule");
  }
  return explorations;
}

TEST(PolicyCommand, Finds_what_the_same_policy_finds_in_process) {
  for (const std::string mode : {"graph_task_callback", "count_fallback"}) {
    const std::string words = "--mode " + mode + " ";
    EXPECT_EQ(explorations_of(words + "--policy deepspeed-0.18.7"),
              explorations_of(words + with_policy("ManagerPolicy")))
        << mode;
  }
}

TEST(PolicyCommand, Prints_a_line_that_replays) {
  const CommandResult found =
      zeroproof("explore S2 --mode count_fallback" + with_policy("ManagerPolicy"));
  EXPECT_EQ(1, found.exit_code) << found.err;
  const std::size_t at = found.out.rfind("reproduce: ");
  ASSERT_NE(std::string::npos, at) << found.out;
  const std::string line = found.out.substr(at + 11);
  const ScratchFolder scratch;
  const CommandResult replayed = run_shell_in(scratch, line);
  EXPECT_EQ(1, replayed.exit_code) << line << replayed.err;
  EXPECT_NE(std::string::npos, replayed.out.find("reproduced: ")) << replayed.out;

  const std::string schedule = line.substr(0, line.find(" --policy-command"));
  const CommandResult bare = run_shell_in(scratch, schedule);
  EXPECT_EQ(2, bare.exit_code);
  EXPECT_NE(std::string::npos, bare.err.find("give the --policy-command")) << bare.err;
}

TEST(PolicyCommand, An_exception_of_the_policy_is_one_that_its_user_sees) {
  const CommandResult result = zeroproof("explore S1 --json" + with_policy("Raising"));
  EXPECT_EQ(3, result.exit_code) << result.err;
  EXPECT_NE(std::string::npos, result.out.find("\"policy_exception\": \"ValueError: no such"))
      << result.out;
  const CommandResult table = zeroproof("explore S1" + with_policy("Raising"));
  EXPECT_NE(std::string::npos, table.out.find("the policy raised ValueError: no such counter"))
      << table.out;
}

struct BadCommand {
  const char* command;
  int exit_code;
  const char* says;
};

class Bad : public ::testing::TestWithParam<BadCommand> {};

TEST_P(Bad, Is_named_in_one_line) {
  const BadCommand& bad = GetParam();
  std::string command = bad.command;
  if (command.starts_with(':')) command = kPython + command.substr(1);
  const std::string limit = command.starts_with("sleep") ? "2" : "60";
  const CommandResult result =
      zeroproof("explore S2 --policy-timeout " + limit + " --policy-command '" + command + "'");
  EXPECT_EQ(bad.exit_code, result.exit_code) << result.out << result.err;
  EXPECT_NE(std::string::npos, (result.out + result.err).find(bad.says))
      << result.out << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    PolicyCommand, Bad,
    ::testing::Values(BadCommand{"exit 3", 5, "it ended: exit code 3"},
                      BadCommand{"no-such-program", 5, "it said: "},
                      BadCommand{"echo hello; sleep 9", 5, "its line is not of the protocol"},
                      BadCommand{"echo {\\\"zeroproof_policy\\\":2}", 5,
                                 "this zeroproof speaks version 1"},
                      BadCommand{"echo {\\\"zeroproof_policy\\\":1}", 5, "no \"name\""},
                      BadCommand{"sleep 60", 5, "no answer for 2 s"},
                      BadCommand{":Absent", 77, "Absent"},
                      BadCommand{":Dying", 5, "it ended: exit code 3; it said: the last words"},
                      BadCommand{":Moody", 4, "gave two answers"}));

TEST(PolicyCommand, Is_no_policy_of_other_explorations) {
  for (const std::string words : {"zero_epilogue", "two_losses", "S1 --policy x2"}) {
    const CommandResult result = zeroproof("explore " + words + with_policy("ManagerPolicy"));
    EXPECT_EQ(2, result.exit_code) << words;
    EXPECT_NE(std::string::npos, result.err.find("leave out --policy")) << result.err;
  }
}

// It is a process group of its own: what it started ends with it.
TEST(PolicyCommand, Leaves_no_process_behind) {
  const ScratchFolder scratch;
  const std::string path = scratch / "pid";
  zeroproof("explore S1 --policy-timeout 1 --policy-command 'sleep 61 & echo $! >" + path +
            "; wait'");
  std::ifstream file(path);
  std::string pid;
  ASSERT_TRUE(std::getline(file, pid));
  // An ended process has an empty command line, whatever its parent is.
  EXPECT_EQ("", run_shell("tr -d '\\0' </proc/" + pid + "/cmdline").out) << pid;
}

}  // namespace
}  // namespace zeroproof::cli_test
