// tests/data/hazards: every hazard of zero_semantics 9 shows under upstream's policies, and not
// without its quirk or policy; docs/HAZARDS.md is what the data say.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/quirks.h"
#include "props/museum/hunt.h"
#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string kFolder = ZP_SOURCE_DIR "/tests/data/hazards/";
const std::string kPage = ZP_SOURCE_DIR "/docs/HAZARDS.md";

Json rows() {
  return Json::parse(read_file(kFolder + "hazards.json")).at("rows");
}

Json specimens() {
  return Json::parse(read_file(kFolder + "specimens.json"));
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

// What DeepSpeed showed: the lines of recorder/hazards/run.sh, by hazard.
std::map<std::string, Words> deepspeed_lines(std::string& version) {
  std::istringstream text(read_file(kFolder + "deepspeed.txt"));
  std::map<std::string, Words> lines;
  std::getline(text, version);
  for (std::string line; std::getline(text, line);)
    lines[line.substr(0, line.find(' '))].push_back(line);
  return lines;
}

bool is_confirmed(const Words& lines) {
  return std::ranges::any_of(
      lines, [](const std::string& line) { return line.find(" CONFIRMED ") != line.npos; });
}

std::string found_of(const Json& row, const Json& found) {
  Words words;
  std::string id = row.at("id");
  id[0] = id[0] == 'N' ? 'n' : 'h';
  for (const museum::Entry& entry : museum::hazards()) {
    if (!entry.id.starts_with(id + "@")) continue;
    const std::string policy(entry.id.substr(id.size() + 1));
    const auto at = found.find(std::string(entry.id));
    words.push_back(at == found.end()
                        ? fmt::format("{}: {}", policy, entry.reason)
                        : fmt::format("{}: `{}`", policy, at->at("property").get<std::string>()));
  }
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

std::string document() {
  std::string version;
  const auto lines = deepspeed_lines(version);
  const Json found = specimens();
  std::string text = read_file(kFolder + "introduction.md") +
                     "\n| hazard | trigger | shown by | found by the hunt | on DeepSpeed |\n"
                     "|---|---|---|---|---|\n";
  std::string observed;
  for (const Json& row : rows()) {
    const std::string id = row.at("id");
    const auto at = lines.find(id);
    const bool is_seen = at != lines.end() && is_confirmed(at->second);
    text += fmt::format("| {} | {} | {} | {} | {} |\n", id, row.at("trigger").get<std::string>(),
                        shown_by(row), found_of(row, found),
                        is_seen ? "confirmed" : row.value("open", "?"));
    if (at != lines.end())
      for (const std::string& line : at->second) observed += line + "\n";
  }
  return text + "\n## What DeepSpeed did\n\n`recorder/hazards/run.sh`, " + version + ":\n\n```\n" +
         observed + "```\n";
}

TEST(Hazards, Have_a_row_each_that_says_how_it_shows) {
  const Json all = rows();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kQuirks));
  const Json found = specimens();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string quirk(quirk_catalogue()[i].id);
    const std::string id = (quirk[0] == 'n' ? "N" : "H") + quirk.substr(1);
    EXPECT_EQ(all[i].at("id"), id);
    const bool is_hunted = found.contains(quirk + "@pr7886");
    EXPECT_TRUE(is_hunted || all[i].contains("command") || all[i].contains("tests")) << id;
  }
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

TEST(Hazards, Found_by_the_hunt_show_again_and_not_on_the_policy_alone) {
  const Json found = specimens();
  for (const museum::Entry& entry : museum::hazards()) {
    const std::string id(entry.id);
    EXPECT_EQ(entry.is_modelled(), found.contains(id)) << id;
    if (!found.contains(id)) continue;
    const auto token = museum::read_token(found.at(id).at("schedule").get<std::string>(), id);
    ASSERT_TRUE(token.has_value()) << id;
    const auto bad = museum::replay(token->specimen, &entry);
    ASSERT_FALSE(bad.falsified.empty()) << id;
    EXPECT_EQ(bad.falsified.front().property->id, found.at(id).at("property")) << id;
    EXPECT_TRUE(museum::replay(token->specimen, entry.reference).falsified.empty()) << id;
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
  std::string version;
  const auto lines = deepspeed_lines(version);
  EXPECT_TRUE(version.starts_with("DeepSpeed ")) << version;
  for (const Json& row : rows()) {
    const auto at = lines.find(row.at("id"));
    const bool is_seen = at != lines.end() && is_confirmed(at->second);
    EXPECT_NE(is_seen, row.contains("open")) << row.at("id");
    if (at == lines.end()) continue;
    for (const std::string& line : at->second)
      EXPECT_TRUE(is_confirmed({line}) || line.find(" control (") != std::string::npos) << line;
  }
}

TEST(HazardsPage, Is_current) {
  EXPECT_EQ(read_file(kPage), document());
}

TEST(HazardsPage, DISABLED_Is_written) {
  write_file(kPage, document());
}

}  // namespace
}  // namespace zeroproof::cli_test
