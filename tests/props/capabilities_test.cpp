#include "props/program/capabilities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "props/program/draw.h"
#include "props/program/program_json.h"
#include "props/program/refusals.h"
#include "tests/read_file.h"

namespace zeroproof::program {
namespace {

Capabilities small() {
  const std::string path = ZP_SOURCE_DIR "/tests/data/capabilities/small.json";
  auto capabilities = Capabilities::parse(read_file(path), path);
  EXPECT_TRUE(capabilities) << (capabilities ? "" : capabilities.error().text);
  return std::move(*capabilities);
}

Program small_program(const std::string& config, const std::string& body) {
  const std::string document =
      R"({"schema": "zeroproof.program/1", "world": {"ranks": 2}, "config": )" + config +
      R"(, "models": [{"name": "m",
                       "body": [{"name": "l", "linear": {"inputs": 1, "outputs": 2}}]}],
         "engines": [{"name": "a", "model": "m"}], "body": )" +
      body + "}";
  auto program = parse_program(document, "p");
  EXPECT_TRUE(program) << (program ? "" : program.error().text);
  return std::move(*program);
}

struct WrongDocument {
  const char* json;
  const char* message;
};

TEST(Capabilities, Refuse_what_they_do_not_know) {
  const std::string begin = R"({"schema": "zeroproof.capabilities/1", )";
  const WrongDocument documents[] = {
      {"{", "f: no JSON"},
      {"{}", "f: /schema: give \"zeroproof.capabilities/1\""},
      {R"("statements": {"fordward": {}}})", "did you mean 'forward'?"},
      {R"("statements": {"forward": {"mod": true}}})", "did you mean 'mode'?"},
      {R"("modules": {"linear": {"outputs": 3}}})", "/modules/linear/outputs: give true"},
      {R"("world": {"rank": [2]}})", "did you mean 'ranks'?"},
      {R"("config": {"/gradient_clippin": true}})", "is no JSON pointer to a key"},
      {R"("engines": 0})", "/engines: give an integer above 0"},
      {R"("refusals": 3})", "/refusals: give true, false or a list of errors' names"},
  };
  for (const WrongDocument& wrong : documents) {
    const std::string json =
        wrong.json[0] == '{' ? std::string(wrong.json) : begin + std::string(wrong.json);
    const auto parsed = Capabilities::parse(json, "f");
    ASSERT_FALSE(parsed) << json;
    EXPECT_NE(std::string::npos, parsed.error().text.find(wrong.message)) << parsed.error().text;
  }
}

struct LackCase {
  const char* config;
  const char* body;
  const char* lack;  // empty: none
};

constexpr const char* kPlain = R"({"gradient_clipping": 0.0})";

TEST(Capabilities, Name_the_first_thing_that_a_subject_cannot_do) {
  const LackCase cases[] = {
      {R"({"gradient_clipping": 0.0})", "[]", ""},
      {R"({"gradient_clipping": 0.5})", "[]", "config/gradient_clipping 0.5"},
      {"{}", "[]", "config/gradient_clipping 1.0"},
      {R"({"gradient_clipping": 0.0, "gradient_accumulation_steps": 4})", "[]", ""},
      {R"({"gradient_clipping": 0.0, "optimizer": {"type": "SGD"}})", "[]", ""},
      {R"({"zero_optimization": {"stage": 1}})", "[]", "config/zero_optimization/stage 1"},
      {kPlain, R"([{"forward": {"engine": "a", "as": "g"}}])", ""},
      {kPlain, R"([{"forward": {"engine": "a", "as": "g", "mode": "no_grad"}}])", "forward.mode"},
      {kPlain, R"([{"backward": {"value": "g"}}])", "backward without engine"},
      {kPlain, R"([{"save": {"engine": "a", "tag": "t"}}])", "save"},
      {kPlain, R"([{"block": {"kind": "coalesce", "engine": "a", "body": []}}])",
       R"(block.kind "coalesce")"},
      {kPlain,
       R"([{"block": {"kind": "no_sync", "engine": "a", "body": [{"step": {"engine": "a"}}]}}])",
       "block.body with step"},
  };
  const Capabilities capabilities = small();
  for (const LackCase& one : cases) {
    const Program program = small_program(one.config, one.body);
    std::string lack = capabilities.lack(program.config).value_or("");
    for (const Statement& statement : program.body)
      if (lack.empty()) lack = capabilities.lack(statement).value_or("");
    EXPECT_EQ(one.lack, lack) << one.config << one.body;
  }
}

// What an engine must refuse is no program of a subject without refusals.
TEST(Capabilities, Know_refusals_by_the_contract) {
  const std::string step_inside = R"([
      {"forward": {"engine": "a", "as": "g"}},
      {"block": {"kind": "no_sync", "engine": "a", "body": [{"step": {"engine": "a"}}]}}])";
  const std::string json =
      R"({"schema": "zeroproof.capabilities/1", "world": {"ranks": [2]}, "modules": {"linear": {}},
          "statements": {"forward": {}, "step": {}, "block": {"engine": true}})";
  const Program program = small_program("{}", step_inside);
  EXPECT_EQ("refusals", Capabilities::parse(json + "}", "f")->lack(program));
  const auto with = [&](const std::string& refusals) {
    return Capabilities::parse(json + R"(, "refusals": )" + refusals + "}", "f")->lack(program);
  };
  EXPECT_EQ(std::nullopt, with("true"));
  EXPECT_EQ(std::nullopt, with(R"(["step_inside_no_sync"])"));
  EXPECT_EQ("refusals", with(R"(["scale_with_apex"])"));
  const auto contract = Contract::of(program);
  ASSERT_TRUE(contract);
  EXPECT_EQ((std::map<std::string, std::string>{{"body/1/block/0", "step_inside_no_sync"}}),
            refusals_of(program, *contract));
}

const SubjectGrammar& small_grammar() {
  static const SubjectGrammar kGrammar = SubjectGrammar::learn(small());
  return kGrammar;
}

TEST(SubjectGrammar, Has_the_rows_that_the_subject_can_do) {
  const SubjectGrammar& subject = small_grammar();
  const auto has = [&](std::string_view name) {
    const auto row = std::ranges::find(grammar(), name, &Production::name);
    return row != grammar().end() && subject.has(static_cast<std::size_t>(row - grammar().begin()));
  };
  for (const char* name : {"plain_training", "two_rounds", "no_sync_round", "two_reversed"})
    EXPECT_TRUE(has(name)) << name;
  for (const char* name : {"save", "coalesced", "step_in_block", "evaluate", "other_round"})
    EXPECT_FALSE(has(name)) << name;
}

TEST(SubjectGrammar, Draws_what_the_subject_can_do) {
  constexpr int kPrograms = 200;
  const SubjectGrammar& subject = small_grammar();
  int lacking = 0;
  int with_blocks = 0;
  for (int seed = 0; seed < kPrograms; ++seed) {
    Source source(static_cast<std::uint64_t>(seed));
    const Program program = draw_with_productions(source, &subject).program;
    lacking += subject.capabilities.lack(program) ? 1 : 0;
    with_blocks += program_json(program).find("no_sync") != std::string::npos ? 1 : 0;
  }
  EXPECT_LE(lacking, kPrograms / 50);
  EXPECT_GE(with_blocks, kPrograms / 20);
}

}  // namespace
}  // namespace zeroproof::program
