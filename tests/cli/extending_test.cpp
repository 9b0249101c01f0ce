// docs/tutorial/add_a_property.md, followed literally: its files are written, its commands run, and
// what they print is what the page shows. The build has compiled its cpp block into a command of
// its own.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/command_line.h"
#include "tests/cli/page_blocks.h"

namespace zeroproof::cli_test {
namespace {

const std::string kPage = ZP_SOURCE_DIR "/docs/tutorial/add_a_property.md";

// The commands of a console block, each with the output below it, in a folder with the page's
// scenario and `binary` as zeroproof.
std::string run_console(const std::string& console, const std::string& scenario,
                        const std::string& binary) {
  const ScratchFolder folder;
  write_file(folder / "two_steps.json", scenario);
  std::istringstream text(console);
  std::string all;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("$ ")) continue;
    all += line + "\n" + run_shell_in(folder, line.substr(2), binary).out;
  }
  return all;
}

// The page with what its commands print now.
std::string page_as_run(const std::string& page) {
  std::string written = page;
  std::string scenario;
  const char* binary = ZP_BINARY;
  for (const Block& block : blocks_of(page)) {
    if (block.language == "json") scenario = block.text;
    if (block.language == "cpp") binary = ZP_EXTENDED_BINARY;
    if (block.language != "console") continue;
    written.replace(written.find("```console\n" + block.text) + 11, block.text.size(),
                    run_console(block.text, scenario, binary));
  }
  return written;
}

TEST(ExtendingPage, Shows_what_its_commands_print) {
  const std::string page = read_file(kPage);
  EXPECT_EQ(page, page_as_run(page));
  EXPECT_NE(page.find("FALSIFIED U1 step.has_gradient"), page.npos);
}

TEST(ExtendingPage, Its_property_is_the_only_one_that_the_command_lacks) {
  EXPECT_EQ("", run_shell("{ " ZP_BINARY " list properties; " ZP_EXTENDED_BINARY
                          " list properties; } | sort | uniq -u | grep -v U1")
                    .out);
}

TEST(ExtendingPage, DISABLED_Is_written) {
  write_file(kPage, page_as_run(read_file(kPage)));
}

}  // namespace
}  // namespace zeroproof::cli_test
