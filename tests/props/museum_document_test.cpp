// docs/MUSEUM_ENTRIES.md and the R table of docs/PROPERTIES.md are what the registries say; every
// specimen of the last whole hunt still shows its bug.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "props/museum/hunt.h"
#include "props/run_properties.h"
#include "tests/museum_specimens.h"
#include "tests/read_file.h"

namespace zeroproof::museum {
namespace {

using Json = nlohmann::json;

std::string path_of(const std::string& path) {
  return std::string(ZP_SOURCE_DIR) + "/" + path;
}

std::string text_of(const std::string& path) {
  return read_file(path_of(path));
}

// By id: what `zeroproof museum --json` wrote of those that it found.
Json specimens() {
  return Json::parse(text_of("tests/props/museum_specimens.json"));
}

std::string how(const Entry& entry) {
  if (entry.plant.decorate_policy) return "decorator of the policy";
  if (entry.plant.decorate_runtime) return "decorator of the runtime";
  if (entry.plant.recompute) return "in a checkpoint";
  if (entry.plant.tile_weight != 1.0) return "in the tiles";
  std::string text = entry.plant.departure.is_none() ? "" : "departure";
  if (entry.policy != "exact")
    text += fmt::format("{}policy {}", text.empty() ? "" : ", ", entry.policy);
  if (entry.quirks != "none")
    text += fmt::format("{}quirk {}", text.empty() ? "" : ", ", entry.quirks);
  return text;
}

std::string row_of(const Entry& entry, const Json& found) {
  const CatalogueRow& row = entry.row();
  if (!entry.is_modelled())
    return fmt::format("| {} | {} | {} | | | not modelled: {} | |\n", entry.id, row.slug, row.tier,
                       entry.reason);
  const auto at = found.find(std::string(entry.id));
  const std::string smallest =
      at == found.end() ? "not found"
                        : fmt::format("`{}`", read_token(at->at("schedule").get<std::string>(), "")
                                                  .map([](const ReadToken& token) {
                                                    return train::case_json(token.specimen.spec);
                                                  })
                                                  .value_or("?"));
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", timeline_link(entry.id), row.slug,
                     row.tier, entry.properties, how(entry), entry.fault, smallest);
}

std::string document() {
  const Json found = specimens();
  std::string text =
      "# Entries of the bug museum\n\n"
      "Generated from the registry (`props/museum/group_*.cpp`) and "
      "`tests/props/museum_specimens.json`, "
      "which `zeroproof museum --json`\nwrote; do not edit. After a change:\n\n"
      "    build/dev/bin/zeroproof_props_tests --gtest_also_run_disabled_tests \\\n"
      "      --gtest_filter=MuseumDocument.DISABLED_Is_written\n\n"
      "docs/MUSEUM.md says what the columns mean. An id leads to the entry's timeline. The last "
      "column is the smallest case: paste it behind `zeroproof museum ID --case`.\n\n"
      "| id | bug | tier | properties | planted as | fault | smallest case |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Entry& entry : entries()) text += row_of(entry, found);
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

TEST(MuseumDocument, Is_current) {
  EXPECT_EQ(text_of("docs/MUSEUM_ENTRIES.md"), document());
}

TEST(MuseumDocument, Names_every_run_property) {
  EXPECT_NE(text_of("docs/PROPERTIES.md").find(property_rows()), std::string::npos)
      << property_rows();
}

TEST(MuseumDocument, DISABLED_Is_written) {
  std::ofstream(path_of("docs/MUSEUM_ENTRIES.md")) << document();
}

TEST(MuseumSpecimens, Show_their_bug_and_hold_on_the_healthy_engine) {
  std::size_t replayed = 0;
  const Json all = specimens();
  for (const auto& [id, row] : all.items()) {
    const Entry* const entry = find_entry(id);
    ASSERT_NE(entry, nullptr) << id;
    const auto token = read_token(row.at("schedule").get<std::string>(), id);
    ASSERT_TRUE(token.has_value()) << id;
    EXPECT_TRUE(replay(token->specimen, entry).find(entry->properties)) << id;
    EXPECT_TRUE(replay(token->specimen, nullptr).falsified.empty()) << id;
    EXPECT_EQ(is_within(token->specimen, entry->row()), entry->larger.empty())
        << id << ": larger than the catalogue's smallest configuration needs a reason";
    ++replayed;
  }
  EXPECT_GE(replayed, 60U);
}

}  // namespace
}  // namespace zeroproof::museum
