// What a scenario file may get wrong: one line with the file, the JSON pointer and the remedy.
#include "props/scenario.h"
#include "tests/scratch_path.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zeroproof {
namespace {

using Json = nlohmann::json;

const Json& valid_document() {
  static const Json document = Json::parse(R"({
    "schema": "zeroproof.scenario/1", "id": "T", "title": "for tests",
    "engines": [{"name": "e", "params": ["p2", "p1"]}],
    "tasks": {
      "outer": [
        {"id": "out", "kind": "output_hook", "forward": "A", "seq": 5, "next": ["o2", "ck"]},
        {"id": "o2", "seq": 4, "next": ["p2"]},
        {"id": "p2", "kind": "accumulate", "param": "p2"},
        {"id": "ck", "kind": "recompute", "task": "inner", "seq": 3}
      ],
      "inner": [{"id": "p1", "kind": "accumulate", "param": "p1"}]
    },
    "program": [{"do": "forward", "label": "A"},
                {"do": "backward", "task": "outer", "via": "tensor"}]
  })");
  return document;
}

// The document with the value at `pointer` replaced; "null" removes it.
struct BadDocument {
  const char* pointer;
  const char* value;
  std::vector<std::string> texts;  // of the error, the JSON pointer first
};

std::string edited(const BadDocument& bad) {
  Json document = valid_document();
  const Json::json_pointer pointer(bad.pointer);
  const Json value = Json::parse(bad.value);
  if (value.is_null()) {
    document[pointer.parent_pointer()].erase(pointer.back());
  } else {
    document[pointer] = value;
  }
  return document.dump();
}

const std::vector<BadDocument> kBadDocuments = {
    {"/enginse", "[]", {"/enginse", "unknown key", "did you mean 'engines'?"}},
    {"/tasks/outer/1/sequence", "4", {"/tasks/outer/1/sequence", "unknown key"}},
    {"/tasks/outer/1/nxt", "[]", {"/tasks/outer/1/nxt", "did you mean 'next'?"}},
    {"/engines/0/parms", "[]", {"/engines/0/parms", "did you mean 'params'?"}},
    {"/program/0/labels", "\"B\"", {"/program/0/labels", "did you mean 'label'?"}},
    {"/schema", "\"zeroproof.scenario/9\"", {"/schema", "zeroproof.scenario/1"}},
    {"/id", "null", {"/id", "must be a string"}},
    {"/engines", "[]", {"/engines", "at least one engine"}},
    {"/program", "[]", {"/program", "must list statements"}},
    {"/tasks", "[]", {"/tasks", "must be an object"}},
    {"/tasks/inner", "[]", {"/tasks/inner", "must list nodes"}},
    {"/tasks/outer/1/seq", "null", {"/tasks/outer/1", "needs \"seq\""}},
    {"/tasks/outer/1/next", "[\"out\"]", {"/tasks/outer/0", "'out' never runs", "cycle"}},
    {"/tasks/outer/0/next", "[\"o2\"]", {"/tasks/outer/3", "'ck' never runs"}},
    {"/tasks/outer/0/next", "[\"o2\", \"nobody\"]", {"/tasks/outer/0/next", "no node 'nobody'"}},
    {"/tasks/outer/3/task", "\"nowhere\"", {"/tasks/outer/3/task", "no task 'nowhere'"}},
    {"/tasks/outer/3/task", "\"outer\"", {"/tasks/outer", "recomputes itself"}},
    {"/tasks/outer/3/task", "null", {"/tasks/outer/3/task", "must name a task"}},
    {"/tasks/outer/2/id", "\"o2\"", {"/tasks/outer/2/id", "'o2' is used twice"}},
    {"/tasks/outer/2/kind", "\"leaf\"", {"/tasks/outer/2/kind", "unknown node kind 'leaf'"}},
    {"/tasks/outer/2/engine", "\"f\"", {"/tasks/outer/2/engine", "no engine 'f'"}},
    {"/tasks/outer/2/param", "null", {"/tasks/outer/2/param", "must be a string"}},
    {"/program/1/task", "\"nowhere\"", {"/program/1/task", "no task 'nowhere'"}},
    {"/program/1/via", "\"magic\"", {"/program/1/via", "'magic'"}},
    {"/program/1/do", "\"sing\"", {"/program/1/do", "unknown statement 'sing'"}},
    {"/program/0/pre_user", "[\"x\"]", {"/program/0/pre_user/0", "no task 'x'"}},
    {"/program/0", "7", {"/program/0", "must be an object"}},
    {"/engines/0/params", "7", {"T.json", "wrong type"}},
    {"/tasks/outer/1/seq", "\"four\"", {"T.json", "wrong type"}},
    {"/tasks/outer/1/next", "7", {"T.json", "wrong type"}},
};

void expect_error(const Result<Scenario>& scenario, const std::vector<std::string>& texts) {
  ASSERT_FALSE(scenario) << "accepted, expected " << texts.front();
  EXPECT_EQ(scenario.error().code, ErrorCode::usage);
  EXPECT_EQ(scenario.error().text.find('\n'), std::string::npos) << scenario.error().text;
  for (const std::string& text : texts) {
    EXPECT_NE(scenario.error().text.find(text), std::string::npos)
        << scenario.error().text << "\nlacks " << text;
  }
}

TEST(ScenarioFile, Is_read_when_nothing_is_wrong) {
  const auto scenario = parse_scenario(valid_document().dump(), "T.json");
  ASSERT_TRUE(scenario) << scenario.error().text;
  EXPECT_EQ(scenario->program.tasks.size(), 2U);
}

TEST(ScenarioFile, Is_refused_with_the_pointer_of_what_is_wrong) {
  for (const BadDocument& bad : kBadDocuments) {
    std::vector<std::string> texts = bad.texts;
    texts.front() = texts.front() == "T.json" ? texts.front() : "T.json: " + texts.front() + ": ";
    expect_error(parse_scenario(edited(bad), "T.json"), texts);
  }
}

TEST(ScenarioFile, Is_refused_when_it_is_not_json) {
  expect_error(parse_scenario("{\"schema\": ", "T.json"), {"T.json: not JSON at byte 12"});
  expect_error(parse_scenario("", "T.json"), {"T.json: not JSON"});
  expect_error(parse_scenario("[]", "T.json"), {"T.json: /: must be an object"});
}

TEST(ScenarioFile, Is_refused_when_it_cannot_be_read) {
  expect_error(load_scenario("/nowhere/at/all.json"), {"/nowhere/at/all.json", "cannot be read"});
  const auto folder = std::filesystem::path(scratch_path("folder.json"));
  std::filesystem::create_directories(folder);
  expect_error(load_scenario(folder), {"folder.json", "cannot be read"});
  std::filesystem::remove(folder);
}

TEST(ScenarioFile, Is_found_by_a_near_name) {
  expect_error(load_scenario("S2x"), {"unknown scenario 'S2x'", "did you mean 'S2"});
  expect_error(load_scenario("something else"), {"known are S1"});
}

TEST(ScenarioFile, Is_read_from_a_path) {
  const auto path = std::filesystem::path(scratch_path("file.json"));
  std::ofstream(path) << valid_document().dump();
  const auto scenario = load_scenario(path);
  ASSERT_TRUE(scenario) << scenario.error().text;
  EXPECT_EQ(scenario->id, "T");
  std::filesystem::remove(path);
}

// docs/reference/scenarios.md has one whole file; it must be one.
TEST(ScenarioFile, In_the_documentation_is_read) {
  std::ifstream file(ZP_SOURCE_DIR "/docs/reference/scenarios.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t begin = page.find("```json\n") + 8;
  const auto scenario = parse_scenario(page.substr(begin, page.find("```", begin) - begin),
                                       "docs/reference/scenarios.md");
  ASSERT_TRUE(scenario) << scenario.error().text;
  EXPECT_EQ(scenario->id, "checkpointed");
}

}  // namespace
}  // namespace zeroproof
