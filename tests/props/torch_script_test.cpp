// export --torch: scripts made from scenarios.
#include "props/export/torch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "props/export/export_target.h"
#include "props/scenario.h"
#include "tests/scratch_path.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

ExportTarget target_of(const std::string& word, ExportTargetOptions options = {}) {
  auto target = export_target(word, options);
  EXPECT_TRUE(target.has_value()) << target.error().text;
  return target.value_or(ExportTarget{});
}

std::string script_of(const ExportTarget& target, TorchScriptOptions options = {}) {
  options.claims = target.claims;
  auto script = torch_script(target.scenario, options);
  EXPECT_TRUE(script.has_value()) << script.error().text;
  return script.value_or("");
}

bool is_python(const std::string& script) {
  const std::string path = scratch_path("script.py");
  std::ofstream(path, std::ios::binary) << script;
  const std::string command =
      "python3 -I -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], \"exec\")' " +
      path;
  return std::system(command.c_str()) == 0;
}

bool has_python() {
  return std::system("python3 -c '' >/dev/null 2>&1") == 0;
}

TEST(TorchScript, Of_every_scenario_is_python) {
  if (!has_python()) GTEST_SKIP() << "no python3 here";
  for (const ScenarioFile& file : builtin_scenarios()) {
    const std::string script = script_of(target_of(std::string(file.id)));
    EXPECT_TRUE(is_python(script)) << file.id;
  }
  for (const char* name : {"tied_in_two_checkpoints", "alternating_parameters", "two_losses",
                           "two_backwards_one_step", "bypassed_output"}) {
    const std::string path = std::string(ZP_SOURCE_DIR "/tests/data/scenarios/") + name + ".json";
    EXPECT_TRUE(is_python(script_of(target_of(path)))) << name;
  }
}

TEST(TorchScript, Has_the_structure_of_the_scenario) {
  const std::string reentrant = script_of(target_of("S2"));
  EXPECT_THAT(reentrant, HasSubstr("checkpoint(self.segment_segment, x, use_reentrant=True)"));
  EXPECT_THAT(reentrant, HasSubstr("self.layer_p4 = Layer(\"p4\")"));
  EXPECT_THAT(script_of(target_of("S5")), HasSubstr("retain_graph=True"));
  EXPECT_THAT(script_of(target_of("S1")), Not(HasSubstr("retain_graph=True")));
  EXPECT_THAT(script_of(target_of("S3")), HasSubstr("Tile.apply(self.segment_shard, x)"));
  EXPECT_THAT(script_of(target_of("S7")), HasSubstr("Boom.apply("));
  EXPECT_THAT(script_of(target_of("S19")), HasSubstr("a, b, c, = run.engines"));
  EXPECT_THAT(script_of(target_of("S12")), HasSubstr("e.layers[\"p4\"]"));
  EXPECT_THAT(script_of(target_of("S14")), HasSubstr("self.idle_leaf_0"));
  EXPECT_THAT(script_of(target_of("S9")), HasSubstr("REQUIRES_SCALE = True"));
  EXPECT_THAT(
      script_of(target_of("S1"), {.framework = ScriptFramework::ddp, .has_static_graph = true}),
      HasSubstr("DDP = {\"static_graph\": True}"));
}

TEST(ExportTarget, Claims_what_the_policy_breaks_in_pytorchs_order_and_minimises) {
  const ExportTarget target = target_of("S2", {.policy = "deepspeed-0.18.3"});
  EXPECT_THAT(target.claims, Contains(Pair("P2", ::testing::_)));
  EXPECT_THAT(target.claims, Contains(Pair("P7", ::testing::_)));
  EXPECT_TRUE(target.is_minimized);
  EXPECT_LT(target.scenario.program.engines[0].params.size(), 4U);
  // A script needs the forward and the step that the search can do without.
  EXPECT_EQ(StatementKind::forward, target.scenario.program.statements.front().kind);
  EXPECT_EQ(StatementKind::step, target.scenario.program.statements.back().kind);
}

TEST(ExportTarget, Takes_a_schedule_and_one_property) {
  const std::string token =
      "zps1:S2:N=4,falsified=P2+P7,latitude=any_topological,mode=graph_task_callback,policy="
      "deepspeed-0.18.3:"
      "0:"
      "3x0:ca4e63da";
  EXPECT_EQ("deepspeed-0.18.3", target_of(token).policy);
  const ExportTarget one = target_of(token, {.property = "P7"});
  ASSERT_EQ(1U, one.claims.size());
  EXPECT_EQ("P7", one.claims[0].first);
  EXPECT_FALSE(export_target(token, {.property = "P3"}).has_value());
  EXPECT_FALSE(export_target("S2", {.property = "P7"}).has_value());
  EXPECT_FALSE(export_target("S99", {}).has_value());
}

TEST(ExportTarget, Claims_nothing_where_the_policy_holds) {
  EXPECT_TRUE(target_of("S2", {.policy = "exact"}).claims.empty());
}

// Names of engines, parameters, labels and nodes may be anything.
RC_GTEST_PROP(TorchScript, Of_any_names_is_python, ()) {
  if (!has_python()) return;
  const auto name = [] {
    return *rc::gen::nonEmpty(rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("ab.1-_ \"'\\x{}classrunself"))));
  };
  Scenario scenario = *load_scenario("S2");
  ProtocolProgram& program = scenario.program;
  scenario.title = name();
  const std::string first = name();
  const std::string second = name() + "2";
  program.engines[0].name = name();
  program.engines[0].params[0] = first;
  program.engines[0].params[1] = second;
  const std::string label = name();
  for (GraphTaskProgram& task : program.tasks)
    for (ProtocolNode& node : task.nodes) {
      if (node.param == "p4") node.param = first;
      if (node.param == "p3") node.param = second;
      if (node.kind == NodeKind::output_hook) node.forward = label;
      node.id = name();
    }
  program.statements[0].forward.label = label;
  const auto script = torch_script(scenario, {});
  RC_ASSERT(script.has_value());
  RC_ASSERT(is_python(*script));
}

}  // namespace
}  // namespace zeroproof
