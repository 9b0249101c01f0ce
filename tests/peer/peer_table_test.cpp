// The table of the peer's tests, what breaks each of ours, and the document made of both.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <set>

#include "tests/peer/support/row.h"
#include "tests/peer/support/table.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof::peer {
namespace {

std::map<std::string, std::string> run_all(const std::vector<TableRow>& table) {
  std::map<std::string, std::string> verdicts;
  for (const TableRow& row : table)
    if (!row.ours.empty()) verdicts[row.ours] = judge(rows().at(row.ours), {});
  return verdicts;
}

}  // namespace

TEST(PeerRows, Each_row_has_a_test_and_what_breaks_it_or_a_reason) {
  std::set<std::string> named;
  for (const TableRow& row : read_table()) {
    if (row.ours.empty()) {
      EXPECT_FALSE(row.note.empty()) << row.test;
      continue;
    }
    EXPECT_TRUE(rows().contains(row.ours)) << row.ours;
    EXPECT_FALSE(row.breaks_with.empty()) << row.ours;
    EXPECT_TRUE(named.insert(row.ours).second) << row.ours << " stands for two rows";
  }
  for (const auto& [name, body] : rows())
    EXPECT_TRUE(named.contains(name)) << name << " is in no row of the table";
}

TEST(PeerRows, All_of_tier_1_are_there_and_at_least_120_pass) {
  int tier_1 = 0;
  int passed = 0;
  for (const TableRow& row : read_table()) {
    if (row.tier != 1) continue;
    ++tier_1;
    if (!row.ours.empty() && judge(rows().at(row.ours), {}).empty()) ++passed;
  }
  EXPECT_EQ(tier_1, 128);
  EXPECT_GE(passed, 120);
}

TEST(PeerRows, Each_row_fails_with_what_breaks_it) {
  for (const TableRow& row : read_table()) {
    if (row.ours.empty()) continue;
    EXPECT_NE(judge(rows().at(row.ours), twin_of(row.breaks_with)), "")
        << row.ours << " passes with " << row.breaks_with;
  }
}

TEST(PeerTestsDocument, Is_what_the_table_and_the_tests_say) {
  const std::vector<TableRow> table = read_table();
  EXPECT_EQ(read_document(), render(table, run_all(table)));
}

TEST(PeerTestsDocument, DISABLED_Is_written) {
  const std::vector<TableRow> table = read_table();
  std::ofstream(document_path()) << render(table, run_all(table));
}

// For the author of a row: which faults, quirks and policies break it.
TEST(PeerRows, DISABLED_What_breaks_them_is_listed) {
  std::vector<std::string> candidates = {
      "rule: after_any_backward", "rule: after_forward",   "fault: lost_reduction",
      "fault: lost_gather",       "fault: lost_broadcast", "fault: lost_accumulation",
      "fault: lost_update",       "fault: lost_scaling",   "fault: lost_read"};
  for (const QuirkInfo& quirk : quirk_catalogue()) candidates.emplace_back(quirk.id);
  for (const PolicyInfo& policy : policy_catalogue())
    if (policy.id != "exact") candidates.emplace_back(policy.id);
  for (const auto& [name, body] : rows()) {
    std::cout << "BREAKS\t" << name;
    for (const std::string& candidate : candidates) {
      const std::string verdict = judge(body, twin_of(candidate));
      if (!verdict.empty()) std::cout << "\t" << candidate;
    }
    std::cout << std::endl;
  }
}

}  // namespace zeroproof::peer
