// docs/MUTATION_FAULTS.md and the R table of docs/PROPERTIES.md are what the registries say; every
// counterexample of the last whole hunt still shows its bug.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
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

std::string how(const Fault& fault) {
  if (fault.subject.decorate_policy) return "decorator of the policy";
  if (fault.subject.decorate_runtime) return "decorator of the runtime";
  if (fault.subject.recompute) return "in a checkpoint";
  if (fault.subject.tile_weight != 1.0) return "in the tiles";
  std::string text = fault.is_woven ? "woven" : "";
  if (fault.policy != "exact")
    text += fmt::format("{}policy {}", text.empty() ? "" : ", ", fault.policy);
  if (fault.quirks != "none")
    text += fmt::format("{}quirk {}", text.empty() ? "" : ", ", fault.quirks);
  return text;
}

std::string row_of(const Fault& fault, const Json& found) {
  const CatalogueRow& row = fault.row();
  if (!fault.is_modelled())
    return fmt::format("| {} | {} | {} | | | not modelled: {} | |\n", fault.id, row.slug, row.tier,
                       fault.reason);
  const auto at = found.find(std::string(fault.id));
  const std::string smallest =
      at == found.end()
          ? "not found"
          : fmt::format("`{}`", read_token(at->at("schedule").get<std::string>(), "")
                                    .map([](const ReadToken& token) {
                                      return train::case_json(token.counterexample.spec);
                                    })
                                    .value_or("?"));
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", timeline_link(fault.id), row.slug,
                     row.tier, fault.properties, how(fault), fault.sentence, smallest);
}

std::string document() {
  const Json found = counterexamples();
  std::string text =
      "# Faults of the bug catalogue\n\n"
      "Generated from `props/mutation/faults/*.faults` and "
      "`tests/mutation/counterexamples.json`, "
      "which `zeroproof mutation --json`\nwrote; do not edit. After a change:\n\n"
      "    build/dev/bin/zeroproof_mutation_tests --gtest_also_run_disabled_tests \\\n"
      "      --gtest_filter=FaultDocument.DISABLED_Is_written\n\n"
      "docs/MUTATION.md says what the columns mean. An id leads to the fault's timeline. The last "
      "column is the smallest case: paste it behind `zeroproof mutation ID --case`.\n\n"
      "| id | bug | tier | properties | woven as | fault | smallest case |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Fault& fault : catalogue_faults()) text += row_of(fault, found);
  return text;
}

std::string property_rows() {
  std::string text =
      "| number | id | invariant | statement | source |\n| --- | --- | --- | --- | --- |\n";
  for (const Property& property : run_properties())
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", property.number, property.id,
                        property.invariant, property.statement, property.source);
  return text;
}

TEST(FaultDocument, Is_current) {
  EXPECT_EQ(text_of("docs/MUTATION_FAULTS.md"), document());
}

TEST(FaultDocument, Names_every_run_property) {
  EXPECT_NE(text_of("docs/PROPERTIES.md").find(property_rows()), std::string::npos)
      << property_rows();
}

TEST(FaultDocument, DISABLED_Is_written) {
  std::ofstream(path_of("docs/MUTATION_FAULTS.md")) << document();
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
