// The R table of docs/PROPERTIES.md is what the registry says; every counterexample of the last
// whole hunt still shows its bug.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "props/mutation/hunt.h"
#include "props/run_properties.h"
#include "tests/mutation/counterexamples.h"
#include "tests/read_file.h"

namespace zeroproof::mutation {
namespace {

using Json = nlohmann::json;

std::string path_of(const std::string& path) {
  return std::string(ZP_SOURCE_DIR) + "/" + path;
}

std::string text_of(const std::string& path) {
  return read_file(path_of(path));
}

// By id: what `zeroproof mutation --json` wrote of those that it found.
Json counterexamples() {
  return Json::parse(text_of("tests/mutation/counterexamples.json"));
}

std::string property_rows() {
  std::string text =
      "| number | id | invariant | statement | source |\n| --- | --- | --- | --- | --- |\n";
  for (const Property& property : run_properties())
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", property.number, property.id,
                        property.invariant, property.statement, property.source);
  return text;
}

TEST(FaultDocument, Names_every_run_property) {
  EXPECT_NE(text_of("docs/PROPERTIES.md").find(property_rows()), std::string::npos)
      << property_rows();
}

TEST(Counterexamples, Show_their_bug_and_hold_on_the_unmutated_engine) {
  std::size_t replayed = 0;
  const Json all = counterexamples();
  for (const auto& [id, row] : all.items()) {
    const Fault* const fault = find_fault(id);
    ASSERT_NE(fault, nullptr) << id;
    const auto token = read_token(row.at("schedule").get<std::string>(), id);
    ASSERT_TRUE(token.has_value()) << id;
    EXPECT_TRUE(replay(token->counterexample, fault).find(fault->properties)) << id;
    EXPECT_TRUE(replay(token->counterexample, nullptr).falsified.empty()) << id;
    EXPECT_EQ(is_within(token->counterexample, fault->row()), fault->larger.empty())
        << id << ": larger than the catalogue's smallest configuration needs a reason";
    ++replayed;
  }
  EXPECT_GE(replayed, 60U);
}

}  // namespace
}  // namespace zeroproof::mutation
