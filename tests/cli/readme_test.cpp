// README's examples that begin with "$ zeroproof": each of their lines is printed, in that order.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/command_line.h"
#include "tests/cli/page_blocks.h"

namespace zeroproof::cli_test {
namespace {

const std::string kTrace = "two_losses_retain__z1_fp32_w1_r0.jsonl.gz";

// What `command` prints in a folder with zeroproof and the recording that the page replays.
std::string printed_by(const std::string& command) {
  const ScratchFolder folder;
  run_shell("ln -s " + bundled("deepspeed-edaa7221-cuda/" + kTrace) + " " + (folder / kTrace));
  return run_shell_in(folder, command).out;
}

// The first line of `shown` that `printed` lacks behind the lines before it; "…" stands for any.
std::string first_missing(const std::string& shown, const std::string& printed) {
  std::size_t place = 0;
  std::istringstream text(shown);
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with("…")) continue;
    place = printed.find(line + "\n", place);
    if (place == printed.npos) return line;
    place += line.size() + 1;
  }
  return "";
}

TEST(ReadmePage, Shows_what_its_commands_print) {
  int examples = 0;
  for (const Block& block : blocks_of(read_file(ZP_SOURCE_DIR "/README.md"))) {
    if (!block.text.starts_with("$ zeroproof ")) continue;
    const std::size_t end = block.text.find('\n');
    const std::string printed = printed_by(block.text.substr(2, end - 2));
    EXPECT_EQ("", first_missing(block.text.substr(end + 1), printed)) << printed;
    ++examples;
  }
  EXPECT_EQ(3, examples);
}

}  // namespace
}  // namespace zeroproof::cli_test
