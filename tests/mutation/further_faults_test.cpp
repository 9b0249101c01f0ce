// The further faults: what the hunt made of them is what docs/FURTHER_FAULTS.md says, and every
// counterexample still shows its fault.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "props/mutation/hunt.h"
#include "props/mutation/hunt_report.h"
#include "props/run_properties.h"
#include "tests/read_file.h"

namespace zeroproof::mutation {
namespace {

using Json = nlohmann::json;

std::string text_of(const std::string& path) {
  return read_file(std::string(ZP_SOURCE_DIR) + "/" + path);
}

// By id: what `zeroproof mutation U01 … Z80 --json` wrote when they were new.
Json hunted() {
  return Json::parse(text_of("tests/mutation/further_faults.json"));
}

// The same of those that were missed, once the gaps were closed.
Json hunted_again() {
  return Json::parse(text_of("tests/mutation/further_faults_closed.json"));
}

std::string row_of(const Fault& fault, const Json& row) {
  const std::string start = fmt::format("| {} | {} |", fault.id, fault.sentence);
  if (!row["found"].get<bool>())
    return fmt::format("{} **no** | | {} | {:.1f} | |\n", start, row["executions"].get<int>(),
                       row["seconds"].get<double>());
  const Property* const property = find_any_property(row["property"].get<std::string>());
  return fmt::format("{} yes | {} `{}` | {} | {:.1f} | {}, {}, {} |\n", start, property->number,
                     property->id, row["executions"].get<int>(), row["seconds"].get<double>(),
                     row["ranks"].get<int>(), row["parameters"].get<int>(),
                     row["events"].get<int>());
}

// The last ones of each group that somebody wrote, or of those that were really reported, and how
// many it has: two of the seventh were of the sixth, too.
struct Group {
  std::string_view last;
  int faults = 20;
};
constexpr std::array kGroups = {
    Group{"Q20"},     Group{"Q94", 14}, Group{"R20"},     Group{"R30", 10}, Group{"R50"},
    Group{"R74", 24}, Group{"R98", 24}, Group{"S20"},     Group{"S40"},     Group{"S60"},
    Group{"S70", 10}, Group{"S96", 26}, Group{"T20"},     Group{"T40"},     Group{"T60"},
    Group{"T80"},     Group{"T98", 16}, Group{"U20"},     Group{"U31", 11}, Group{"V20"},
    Group{"V26", 6},  Group{"W20"},     Group{"W26", 6},  Group{"X20"},     Group{"X26", 5},
    Group{"Y20"},     Group{"Z20"},     Group{"Z40", 18}, Group{"Z60"},     Group{"Z80"}};

TEST(FurtherFaults, Is_groups_of_twenty_beside_the_catalogue) {
  std::set<std::string_view> ids;
  for (const Fault& fault : further_faults()) {
    EXPECT_TRUE(fault.is_further()) << fault.id;
    EXPECT_EQ(find_row(fault.id), nullptr) << fault.id;
    EXPECT_EQ(find_fault(fault.id), &fault);
    EXPECT_FALSE(fault.sentence.empty()) << fault.id;
    EXPECT_TRUE(fault.is_woven) << fault.id;
    ids.insert(fault.id);
  }
  EXPECT_EQ(ids.size(), 530U);
  for (const Fault& fault : catalogue_faults()) EXPECT_FALSE(fault.is_further()) << fault.id;
}

TEST(FurtherFaults, Is_counted_beside_the_catalogue) {
  HuntReport report;
  for (const char* id : {"B19", "U01", "U02"}) {
    report.found.push_back({.fault = find_fault(id), .is_found = id[2] == '1'});
    report.found.back().property = find_any_property("P26");
  }
  const Json summary = Json::parse(hunt_json(report))["summary"];
  EXPECT_EQ(summary["modelled"], 1);
  EXPECT_EQ(summary["found"], 0);
  EXPECT_EQ(summary["further"], 2);
  EXPECT_EQ(summary["further_found"], 1);
}

// The rows of one group, as the page has them; `before`: the last one of the group before.
std::string table_of(std::string_view before, std::string_view last, const Json& rows) {
  std::string table;
  for (const Fault& fault : further_faults())
    if (fault.id > before && fault.id <= last && rows.contains(std::string(fault.id)))
      table += row_of(fault, rows[std::string(fault.id)]);
  return table;
}

TEST(FurtherFaults, Is_told_as_it_was_hunted) {
  const std::string page = text_of("docs/FURTHER_FAULTS.md");
  std::string_view before;
  for (const Group& group : kGroups) {
    const std::string table = table_of(before, group.last, hunted());
    EXPECT_EQ(std::ranges::count(table, '\n'), group.faults) << group.last;
    EXPECT_NE(page.find(table), std::string::npos) << table;
    const std::string again = table_of(before, group.last, hunted_again());
    EXPECT_NE(page.find(again), std::string::npos) << again;
    before = group.last;
  }
}

TEST(FurtherFaults, Is_hunted_again_where_it_was_missed) {
  const Json first = hunted();
  const Json rows = hunted_again();
  for (const Fault& fault : further_faults()) {
    const std::string id(fault.id);
    EXPECT_NE(first.at(id)["found"].get<bool>(), rows.contains(id)) << id;
  }
}

// By any property: programs have changed since, and which one speaks first with them.
void expect_shown_again(const Json& rows) {
  for (const auto& [id, row] : rows.items()) {
    if (!row["found"].get<bool>()) continue;
    const Fault* const fault = find_fault(id);
    ASSERT_NE(fault, nullptr) << id;
    const auto token = read_token(row["schedule"].get<std::string>(), id);
    ASSERT_TRUE(token.has_value()) << id;
    const CaseResult mutated = replay(token->counterexample, fault);
    EXPECT_FALSE(mutated.falsified.empty()) << id;
    EXPECT_TRUE(replay(token->counterexample, nullptr).falsified.empty()) << id;
  }
}

TEST(FurtherFaults, Shows_again_what_was_found) {
  expect_shown_again(hunted());
  expect_shown_again(hunted_again());
}

}  // namespace
}  // namespace zeroproof::mutation
