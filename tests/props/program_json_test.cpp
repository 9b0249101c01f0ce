#include "props/program/program_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "props/program/program_schema.h"
#include "tests/read_file.h"
#include "tests/scratch_path.h"

namespace zeroproof::program {
namespace {

using Document = nlohmann::json;

const std::string kProgramFiles = ZP_SOURCE_DIR "/tests/data/programs/";

Program parsed_program(const std::string& text) {
  auto program = parse_program(text, "p.json");
  EXPECT_TRUE(program) << program.error().text;
  return program ? *program : Program();
}

void add_keys(const Document& value, std::set<std::string>& keys) {
  for (const auto& [key, below] : value.items()) {
    if (value.is_object()) keys.insert(key);
    if (below.is_structured()) add_keys(below, keys);
  }
}

// The file has each statement, module and member, none with its default: it is written as it is.
TEST(ProgramJson, WritesWhatItRead) {
  const std::string text = read_file(kProgramFiles + "every_kind.json");
  EXPECT_EQ(program_json(parsed_program(text)), text);
}

TEST(ProgramJson, KnowsAProgramAgain) {
  const Document document = Document::parse(read_file(kProgramFiles + "every_kind.json"));
  const Program program = parsed_program(document.dump());
  EXPECT_TRUE(program == parsed_program(document.dump()));
  for (const char* const key : {"world", "config", "data"}) {
    Document changed = document;
    changed.erase(key);
    EXPECT_FALSE(program == parsed_program(changed.dump())) << key;
  }
  for (const char* const key : {"models", "engines", "body"}) {
    Document changed = document;
    changed[key].erase(0);
    EXPECT_FALSE(program == parsed_program(changed.dump())) << key;
  }
}

TEST(ProgramJson, IsTestedWithEveryMemberOfTheLanguage) {
  std::set<std::string> tested;
  add_keys(Document::parse(read_file(kProgramFiles + "every_kind.json")), tested);
  const Document schema = Document::parse(program_schema());
  for (const auto& [name, definition] : schema.at("$defs").items()) {
    for (const auto& [member, type] : definition.at("properties").items()) {
      EXPECT_TRUE(tested.contains(member)) << name << "." << member;
    }
  }
}

TEST(ProgramJson, LeavesDefaultsOut) {
  const std::string text = R"({
 "schema": "zeroproof.program/1",
 "models": [{"name":"m","body":[{"name":"l","linear":{"inputs":1,"outputs":2}}]}],
 "engines": [{"name":"a","model":"m"}],
 "body": []
}
)";
  Document full = Document::parse(text);
  full["world"] = {{"ranks", 1}, {"autograd", "full"}};
  full["config"] = {{"zero_optimization", {{"stage", 0}}}, {"gradient_clipping", 1.0}};
  full["models"][0]["container"] = "tensors";
  full["engines"][0]["parameter_groups"] = 1;
  EXPECT_EQ(program_json(parsed_program(full.dump())), text);
}

TEST(ProgramJson, SaysWhatIsWrongWhereAndWhatMayStandThere) {
  const Document document = Document::parse(read_file(kProgramFiles + "every_kind.json"));
  for (const Document& row : Document::parse(read_file(kProgramFiles + "wrong_documents.json"))) {
    Document wrong = document;
    wrong[Document::json_pointer(row.at("at").get<std::string>())] = row.at("value");
    const auto program = parse_program(wrong.dump(), "p.json");
    ASSERT_FALSE(program) << row.dump();
    EXPECT_EQ(program.error().text, row.at("error").get<std::string>());
  }
}

TEST(ProgramJson, RefusesTextThatIsNoDocument) {
  const auto error_of = [](const char* text) {
    const auto program = parse_program(text, "p.json");
    return program ? "none" : program.error().text;
  };
  EXPECT_EQ(error_of("[]"), "p.json: /: is an empty list; give an object");
  EXPECT_EQ(error_of("{}"), "p.json: /: needs \"schema\": \"zeroproof.program/1\"");
  EXPECT_EQ(error_of(R"({"schema": "zeroproof.program/1"})"), "p.json: /: needs \"models\"");
  EXPECT_EQ(error_of(R"({"body": [], "body": []})"), "p.json: /body: given twice; keep one");
}

TEST(ProgramJson, HasTheSchemaThatIsCheckedIn) {
  const std::string path = ZP_SOURCE_DIR "/props/program/program.schema.json";
  if (read_file(path) == program_schema()) return;
  const std::string fresh = scratch_path("program.schema.json");
  std::ofstream(fresh) << program_schema();
  FAIL() << "the tables of the language have changed: cp " << fresh << " " << path;
}

}  // namespace
}  // namespace zeroproof::program
