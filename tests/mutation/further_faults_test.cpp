// The further faults: who was hunted when they were new and when gaps were closed, and every
// counterexample still shows its fault.
#include <gtest/gtest.h>

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

std::string file_text(const std::string& path) {
  return read_file(std::string(ZP_SOURCE_DIR) + "/" + path);
}

// By id: what `zeroproof mutation U01 … Z80 --json` wrote when they were new.
Json hunted() {
  return Json::parse(file_text("tests/mutation/further_faults.json"));
}

// The same of those that were missed, once the gaps were closed.
Json hunted_again() {
  return Json::parse(file_text("tests/mutation/further_faults_closed.json"));
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

TEST(FurtherFaults, Is_hunted_in_groups) {
  const Json rows = hunted();
  std::string_view before;
  for (const Group& group : kGroups) {
    const auto is_of_group = [&](const Fault& fault) {
      return fault.id > before && fault.id <= group.last && rows.contains(std::string(fault.id));
    };
    EXPECT_EQ(std::ranges::count_if(further_faults(), is_of_group), group.faults) << group.last;
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
