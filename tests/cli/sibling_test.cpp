// The program with faults stands beside zeroproof, which says so where it does not.
#include <gtest/gtest.h>

#include <filesystem>

#include "props/mutation_row.h"
#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

namespace fs = std::filesystem;

TEST(Sibling, Is_named_where_it_is_missing) {
  const ScratchFolder scratch;
  const std::string alone = scratch / "zeroproof";
  fs::copy_file(ZP_BINARY, alone);
  for (const char* words :
       {"mutation B19", "museum B19", "help mutation", "train --fault B19", "verify --quick"}) {
    const CommandResult run = run_shell(alone + " " + words);
    EXPECT_EQ(run.exit_code, 77) << words << run.err;
    EXPECT_NE(run.err.find(alone + "-mutation"), std::string::npos) << run.err;
    EXPECT_EQ(run.out, "") << words;
  }
}

TEST(MutationRow, Is_read_from_the_document_of_a_hunt) {
  const auto row = parse_mutation_row(R"({"summary": {"canary_found": true,
      "unmutated_executions": 400}, "unmutated_findings": [], "faults": [
      {"id": "A01", "sentence": "one", "modelled": true, "found": true},
      {"id": "A02", "sentence": "two", "modelled": true, "found": false},
      {"id": "A03", "sentence": "", "modelled": false, "found": false}]})");
  ASSERT_TRUE(row.has_value()) << row.error().text;
  EXPECT_EQ(row->faults, 2U);
  EXPECT_EQ(row->found, 1U);
  ASSERT_EQ(row->missed.size(), 1U);
  EXPECT_EQ(row->missed.front().id, "A02");
  EXPECT_EQ(row->unmutated_executions, 400U);
  EXPECT_FALSE(row->is_good());
  EXPECT_FALSE(parse_mutation_row("no document").has_value());
}

}  // namespace
}  // namespace zeroproof::cli_test
