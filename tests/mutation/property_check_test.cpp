// The mutation check of the properties: which mutated bugs escape without one of them, ten of those
// confirmed by hunting without it, and why each that catches nothing alone stays.
// docs/PROPERTY_CHECK.md is what the data say.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "props/mutation/hunt.h"
#include "props/registry.h"
#include "props/run_properties.h"
#include "tests/read_file.h"

namespace zeroproof::mutation {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string kFolder = ZP_SOURCE_DIR "/tests/";
const std::string kPage = ZP_SOURCE_DIR "/docs/PROPERTY_CHECK.md";

Json json_of(const std::string& name) {
  return Json::parse(read_file(kFolder + name));
}

// By id of a fault: the numbers that it falsified, as `mutation --matrix --json` wrote them.
std::map<std::string, std::set<std::string>> matrix() {
  return json_of("mutation/matrix.json").get<std::map<std::string, std::set<std::string>>>();
}

Words catches(const std::string& number) {
  Words ids;
  for (const auto& [id, numbers] : matrix())
    if (numbers.contains(number)) ids.push_back(id);
  return ids;
}

Words escapes_without(const std::string& number) {
  Words ids;
  for (const auto& [id, numbers] : matrix())
    if (numbers == std::set<std::string>{number}) ids.push_back(id);
  return ids;
}

Words all_numbers() {
  Words numbers;
  for (const Property& property : all_properties()) numbers.emplace_back(property.number);
  for (const Property& property : run_properties()) numbers.emplace_back(property.number);
  return numbers;
}

// By number: why it stays although it catches nothing alone.
std::map<std::string, Words> reasons() {
  std::map<std::string, Words> reasons;
  for (const Json& group : json_of("props/property_reasons.json"))
    for (const std::string& number : group.at("properties").get<Words>())
      reasons[number].push_back(group.at("reason"));
  return reasons;
}

// Where else it is seen failing: in explorations of upstream's policies, in bundled recordings, in
// the short streams that each monitor is tested with.
std::string seen_failing(const std::string& number) {
  int explorations = 0;
  int recordings = 0;
  int streams = 0;
  for (const Json& row : json_of("props/hazard_table.json").at("rows"))
    explorations += static_cast<int>(std::ranges::count(row.at("falsified"), Json(number)));
  for (const Json& found : json_of("props/expected_findings.json"))
    recordings += found.at("falsified").contains(number) ? 1 : 0;
  for (const Json& stream : json_of("props/property_streams.json"))
    streams += stream.at("property") == number ? 1 : 0;
  Words words;
  if (explorations > 0) words.push_back(fmt::format("{} explorations", explorations));
  if (recordings > 0) words.push_back(fmt::format("{} recordings", recordings));
  if (streams > 0) words.push_back(fmt::format("{} streams", streams));
  for (const Json& row : json_of("props/property_seen_failing.json"))
    if (row.at("property") == number)
      words.push_back(fmt::format("`{}`", row.at("by").get<std::string>()));
  return fmt::format("{}", fmt::join(words, ", "));
}

constexpr std::uint64_t kRemovalCases = 400;  // hunted for each of the ten

Found hunt_one(const std::string& id, const std::set<std::string>& without) {
  HuntOptions options;
  options.cases_max = kRemovalCases;
  options.time_max_ns = 600'000'000'000;
  options.unmutated_cases = 0;
  options.minimizes = false;
  options.without = without;
  const HuntWatch watch{.now_ns = [] {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }};
  return hunt({find_fault(id)}, options, watch).found.front();
}

std::string document() {
  std::string text =
      read_file(kFolder + "mutation/property_check.md") +
      "\n| property | catches | escape without it | also seen failing in | why it stays |\n"
      "|---|---|---|---|---|\n";
  const auto why = reasons();
  for (const std::string& number : all_numbers()) {
    const Words alone = escapes_without(number);
    const auto reason = why.find(number);
    text += fmt::format("| {} `{}` | {} | {} | {} | {} |\n", number, find_any_property(number)->id,
                        catches(number).size(),
                        alone.empty() ? "none" : fmt::format("{}", fmt::join(alone, " ")),
                        seen_failing(number),
                        !alone.empty()        ? ""
                        : reason == why.end() ? "?"
                                              : reason->second.front());
  }
  text += fmt::format(
      "\n## Ten rows by removal\n\n`zeroproof mutation ID --without PROPERTY --budget {0}x`, and "
      "the "
      "same without the flag:\n\n| fault | removed | with it | without it |\n|---|---|---|---|\n",
      kRemovalCases);
  for (const Json& row : json_of("mutation/removals.json"))
    text += fmt::format("| {} | {} | found after {} executions | missed in {} cases |\n",
                        row.at("fault").get<std::string>(), row.at("without").get<std::string>(),
                        row.at("executions").get<std::uint64_t>(), kRemovalCases);
  return text;
}

TEST(PropertyCheck, Ten_faults_escape_when_their_property_is_removed) {
  const Json rows = json_of("mutation/removals.json");
  EXPECT_EQ(rows.size(), 10U);
  for (const Json& row : rows) {
    const std::string id = row.at("fault");
    const std::string number = row.at("without");
    SCOPED_TRACE(id + " without " + number);
    EXPECT_EQ(matrix().at(id), std::set<std::string>{number});
    const Found with = hunt_one(id, {});
    EXPECT_TRUE(with.is_found);
    EXPECT_EQ(with.executions, row.at("executions"));
    EXPECT_FALSE(hunt_one(id, {number}).is_found);
  }
}

TEST(PropertyCheck, Matrix_has_every_counterexample_with_the_property_that_found_it) {
  const auto rows = matrix();
  const Json counterexamples = json_of("mutation/counterexamples.json");
  for (const auto& [id, counterexample] : counterexamples.items()) {
    ASSERT_TRUE(rows.contains(id)) << id;
    const Property* const property =
        find_any_property(counterexample.at("property").get<std::string>());
    ASSERT_NE(property, nullptr) << id;
    EXPECT_TRUE(rows.at(id).contains(std::string(property->number))) << id;
  }
}

TEST(PropertyCheck, A_property_catches_something_alone_or_says_why_it_stays) {
  const auto why = reasons();
  for (const std::string& number : all_numbers()) {
    const auto reason = why.find(number);
    EXPECT_EQ(escapes_without(number).empty(), reason != why.end()) << number;
    EXPECT_TRUE(reason == why.end() || reason->second.size() == 1U) << number;
  }
  const Words numbers = all_numbers();
  for (const auto& [number, reason] : why)
    EXPECT_NE(std::ranges::find(numbers, number), numbers.end()) << number;
}

TEST(PropertyCheck, A_property_that_catches_no_fault_is_seen_failing_elsewhere) {
  for (const std::string& number : all_numbers())
    EXPECT_FALSE(catches(number).empty() && seen_failing(number).empty()) << number;
}

// A command has to fail and name the property; a test or a file of tests has to be there.
TEST(PropertyCheck, Where_a_property_is_seen_failing_it_fails) {
  for (const Json& row : json_of("props/property_seen_failing.json")) {
    const std::string by = row.at("by");
    const std::string number = row.at("property");
    const auto shell = [&](const std::string& line) {
      return std::system(("cd " ZP_SOURCE_DIR " && " + line + " >/dev/null").c_str());
    };
    if (by.starts_with("train ")) {
      EXPECT_EQ(0, shell(ZP_BINARY " " + by + " | grep '^  " + number + " '")) << by;
    } else if (by.find('/') != by.npos) {
      EXPECT_EQ(0, shell("ls " + by)) << by;
    } else {
      const std::size_t dot = by.find('.');
      EXPECT_EQ(0, shell("grep -rF '(" + by.substr(0, dot) + ", " + by.substr(dot + 1) +
                         "' tests --include=*.cpp"))
          << by;
    }
  }
}

TEST(PropertyCheckPage, Is_current) {
  EXPECT_EQ(read_file(kPage), document());
}

TEST(PropertyCheckPage, DISABLED_Is_written) {
  std::ofstream(kPage) << document();
}

}  // namespace
}  // namespace zeroproof::mutation
