// `zeroproof generate`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

const std::string kSmall = ZP_SOURCE_DIR "/tests/data/capabilities/small.json";

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(Generate, Writes_a_program_a_line_which_its_number_draws_again) {
  const auto lines = lines_of(zeroproof("generate --seed 3 --count 4 --json --for " + kSmall).out);
  ASSERT_EQ(4U, lines.size());
  for (const nlohmann::json& line : lines) {
    EXPECT_EQ("zeroproof.case/1", line["schema"]);
    EXPECT_EQ("zeroproof.program/1", line["program"]["schema"]);
    EXPECT_TRUE(line["token"].get<std::string>().starts_with("zpg1:3:"));
  }
  const std::string last = std::to_string(lines.back()["case"].get<int>());
  const auto again = lines_of(
      zeroproof("generate --seed 3 --count 1 --json --first " + last + " --for " + kSmall).out);
  ASSERT_EQ(1U, again.size());
  EXPECT_EQ(lines.back(), again.front());
}

TEST(Generate, Shows_programs_as_text) {
  const CommandResult result = zeroproof("generate --seed 3 --count 2");
  EXPECT_EQ(0, result.exit_code);
  EXPECT_NE(std::string::npos, result.out.find("case 1  zpg1:3:1:all\n")) << result.out;
  EXPECT_NE(std::string::npos, result.out.find("= initialize(")) << result.out;
}

TEST(Generate, Chooses_among_candidates_which_a_token_names) {
  const std::string command = "generate --seed 3 --count 6 --candidates 4 --json --for " + kSmall;
  const CommandResult result = zeroproof(command);
  const auto lines = lines_of(result.out);
  ASSERT_EQ(6U, lines.size());
  EXPECT_EQ(result.out, zeroproof(command).out);
  int others = 0;
  for (const nlohmann::json& line : lines)
    others += line["token"].get<std::string>().find('.') != std::string::npos ? 1 : 0;
  EXPECT_GT(others, 0) << result.out;
  EXPECT_NE(std::string::npos, result.err.find("6 programs have ")) << result.err;
}

// A subject whose configuration no case has.
TEST(Generate, Says_what_it_skipped_and_gives_up) {
  const ScratchFolder scratch;
  write_file(scratch / "none.json", R"({"schema": "zeroproof.capabilities/1",
      "modules": {"linear": {}}, "config": {"/gradient_clipping": [123.0]}})");
  const CommandResult result = zeroproof("generate --count 1 --for " + (scratch / "none.json"));
  EXPECT_NE(0, result.exit_code);
  const std::string expected = "0 programs; 50 skipped, which the subject cannot do: ";
  EXPECT_NE(std::string::npos, result.err.find(expected)) << result.err;
}

}  // namespace
}  // namespace zeroproof::cli_test
