// tests/data/hazards: every hazard of docs/reference/hazards.md shows under upstream's policies,
// and not without its quirk or policy; docs/reference/hazards.md is what the data say.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "props/hunt/corpus.h"
#include "props/mutation/fault.h"
#include "props/run_properties.h"
#include "tests/cli/command_line.h"
#include "tests/mutation/hazard_releases.h"
#include "zeroproof/engine/quirks.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string kHazardFolder = ZP_SOURCE_DIR "/tests/data/hazards/";
const std::string kPage = ZP_SOURCE_DIR "/docs/reference/hazards.md";

Json rows() {
  return Json::parse(read_file(kHazardFolder + "hazards.json")).at("rows");
}

// By id: the property that shows each hazard in the corpus of tests/mutation.
Json counterexamples() {
  Json found = Json::object();
  for (const mutation::Fault& fault : mutation::hazards()) {
    const std::string id(fault.id);
    const std::string path = ZP_SOURCE_DIR "/tests/mutation/corpus/" + id + ".json";
    if (!std::filesystem::exists(path)) continue;
    const auto entry = hunt::parse_corpus_entry(read_file(path), path);
    EXPECT_TRUE(entry.has_value()) << path;
    if (entry) found[id] = {{"property", find_any_property(entry->property)->id}};
  }
  return found;
}

// Of `command` or `without`, with the policy in its place.
std::string command_of(const Json& row, const char* key, const std::string& policy) {
  std::string text = row.value(key, "");
  const std::string hole = "{policy}";
  if (const std::size_t at = text.find(hole); at != std::string::npos)
    text.replace(at, hole.size(), policy);
  return text;
}

CommandResult run(const std::string& arguments) {
  return run_shell("cd " ZP_SOURCE_DIR " && " ZP_BINARY " " + arguments);
}

std::string lower(std::string id) {
  id[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(id[0])));
  return id;
}

std::string upper(std::string id) {
  id[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(id[0])));
  return id;
}

std::string found_of(const Json& row, const Json& found) {
  Words words;
  const std::string id = lower(row.at("id"));
  for (const mutation::Fault& fault : mutation::hazards()) {
    if (!fault.id.starts_with(id + "@")) continue;
    const std::string policy(fault.id.substr(id.size() + 1));
    const auto at = found.find(std::string(fault.id));
    const std::string_view without = fault.is_modelled() ? "not found" : fault.reason;
    words.push_back(at == found.end()
                        ? fmt::format("{}: {}", policy, without)
                        : fmt::format("{}: `{}`", policy, at->at("property").get<std::string>()));
  }
  if (words.empty()) return row.value("unhunted", "no quirk: the policy alone shows it");
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string shown_by(const Json& row) {
  Words words;
  if (row.contains("command"))
    words.push_back(fmt::format("`{}` ({}): {}", row.at("command").get<std::string>(),
                                fmt::join(row.at("policies").get<Words>(), ", "),
                                row.at("shows").get<std::string>()));
  for (const std::string& test : row.value("tests", Words()))
    words.push_back(fmt::format("test {}", test));
  if (row.contains("note")) words.push_back(row.at("note"));
  return fmt::format("{}", fmt::join(words, "; "));
}

bool is_confirmed_somewhere(const std::string& id, const std::vector<HazardRelease>& releases) {
  return std::ranges::any_of(
      releases, [&](const HazardRelease& release) { return is_confirmed(id, release); });
}

// The cells of a hazard: one a release; a hazard that no release shows says why in the newest.
std::string release_cells(const Json& row, const std::vector<HazardRelease>& releases) {
  std::string cells;
  for (std::size_t i = 0; i < releases.size(); ++i) {
    const std::vector<HazardRelease> until(releases.begin(), releases.begin() + i + 1);
    std::string cell = hazard_cell(row.at("id"), until);
    if (row.contains("open") && i + 1 == releases.size()) cell = row.at("open");
    cells += fmt::format(" {} |", cell);
  }
  return cells;
}

std::string document() {
  const std::vector<HazardRelease> releases = read_hazard_releases();
  const Json found = counterexamples();
  std::string head = "\n| hazard | trigger | shown by | found by the hunt |",
              line = "|---|---|---|---|";
  for (const HazardRelease& release : releases) {
    head += fmt::format(" on {} |", release.release.text());
    line += "---|";
  }
  std::string text = read_file(kHazardFolder + "introduction.md") + head + "\n" + line + "\n";
  for (const Json& row : rows())
    text += fmt::format("| {} | {} | {} | {} |{}\n", row.at("id").get<std::string>(),
                        row.at("trigger").get<std::string>(), shown_by(row), found_of(row, found),
                        release_cells(row, releases));
  return text;
}

// Those that are a quirk, those that a policy has by itself, and four that no quirk has.
std::set<std::string> known_ids() {
  std::set<std::string> ids = {"N1", "N2", "N3", "N7", "N9", "N10", "N11"};
  for (const QuirkInfo& info : quirk_catalogue()) ids.insert(upper(std::string(info.id)));
  return ids;
}

TEST(Hazards, Have_a_row_each_that_says_how_it_shows) {
  std::set<std::string> ids;
  const Json found = counterexamples();
  for (const Json& row : rows()) {
    const std::string id = row.at("id");
    EXPECT_TRUE(ids.insert(id).second) << id;
    const bool is_hunted = found.contains(lower(id) + "@deepspeed-0.18.7");
    EXPECT_TRUE(is_hunted || row.contains("command") || row.contains("tests")) << id;
  }
  EXPECT_EQ(ids, known_ids());
}

TEST(Hazards, Show_with_their_quirk_and_policy_and_not_without) {
  for (const Json& row : rows()) {
    if (!row.contains("command")) continue;
    for (const std::string& policy : row.at("policies").get<Words>()) {
      const std::string bad = command_of(row, "command", policy);
      const CommandResult shown = run(bad);
      EXPECT_EQ(1, shown.exit_code) << bad << "\n" << shown.out << shown.err;
      const std::string property = row.at("shows").get<std::string>() + " ";
      EXPECT_NE(std::string::npos, shown.out.find(property)) << bad << "\n" << shown.out;
      const std::string good = command_of(row, "without", policy);
      const CommandResult held = run(good);
      EXPECT_EQ(0, held.exit_code) << good << "\n" << held.out << held.err;
    }
  }
}

TEST(Hazards, Name_tests_that_exist) {
  const std::string sources =
      run_shell("cat " ZP_SOURCE_DIR "/tests/engine/*.cpp | tr '\\n' ' '").out;
  for (const Json& row : rows())
    for (std::string test : row.value("tests", Words())) {
      test = test.substr(test.find('/') + 1);
      test.replace(test.find('.'), 1, ", ");
      EXPECT_NE(std::string::npos, sources.find("(" + test + ")")) << test;
    }
}

TEST(Hazards, Are_settled_by_DeepSpeed_or_say_why_not) {
  const std::vector<HazardRelease> releases = read_hazard_releases();
  ASSERT_FALSE(releases.empty());
  for (const HazardRelease& release : releases)
    EXPECT_TRUE(release.header.starts_with("DeepSpeed " + release.release.text() + ","))
        << release.header;
  for (const Json& row : rows())
    EXPECT_NE(is_confirmed_somewhere(row.at("id"), releases), row.contains("open")) << row.at("id");
}

TEST(Hazards, Recorded_of_a_release_are_cases_of_a_row_with_a_symptom) {
  std::vector<std::string> ids;
  for (const Json& row : rows()) ids.push_back(row.at("id"));
  for (const HazardRelease& release : read_hazard_releases())
    for (const HazardCase& one : release.cases) {
      EXPECT_NE(one.word, "unreadable") << release.header << "\n" << one.line;
      EXPECT_TRUE(std::ranges::find(ids, one.hazard) != ids.end()) << one.line;
      if (one.word != "CONFIRMED") continue;
      EXPECT_FALSE(one.observed.empty()) << one.line;
      EXPECT_FALSE(one.line.ends_with("expected " + one.observed)) << one.line;
    }
}

// The word of a hazard whose release `i` has the cases `words[i]`: word and observed value.
std::string cell_of(const std::vector<std::vector<std::pair<std::string, std::string>>>& words) {
  std::vector<HazardRelease> releases;
  for (const auto& cases : words) {
    HazardRelease release;
    for (std::size_t i = 0; i < cases.size(); ++i)
      release.cases.push_back(
          {"H1", cases[i].first, fmt::format("case {}", i), cases[i].second, ""});
    releases.push_back(release);
  }
  return hazard_cell("H1", releases);
}

TEST(Hazards, Have_one_word_a_release) {
  EXPECT_EQ(cell_of({{{"CONFIRMED", "2.0"}, {"control", "1.0"}}}), "confirmed");
  EXPECT_EQ(cell_of({{{"CONFIRMED", "2.0"}}, {{"absent", "1.0"}}}), "absent");
  EXPECT_EQ(cell_of({{{"CONFIRMED", "2.0"}}, {{"CONFIRMED", "3.0"}}}), "different (3.0)");
  EXPECT_EQ(cell_of({{{"CONFIRMED", "2.0"}, {"absent", "1.0"}}}),
            "confirmed in 1 of 2 cases; absent in 1 of 2 cases");
  EXPECT_EQ(cell_of({{{"CONFIRMED", "2.0"}, {"CONFIRMED", "2.0"}},
                     {{"CONFIRMED", "2.0"}, {"CONFIRMED", "3.0"}}}),
            "confirmed in 1 of 2 cases; different (3.0) in 1 of 2 cases");
  EXPECT_EQ(cell_of({{{"not run", "no such key"}}}), "not run");
  EXPECT_EQ(cell_of({{}}), "not run");
}

TEST(HazardsPage, Is_current) {
  EXPECT_EQ(read_file(kPage), document());
}

TEST(HazardsPage, DISABLED_Is_written) {
  write_file(kPage, document());
}

}  // namespace
}  // namespace zeroproof::cli_test
