// replay, explore, verify, diff and convert on real input.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tinyxml2.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

using Json = nlohmann::json;

const std::string kDeepSpeed = "deepspeed-edaa7221-cuda/";

TEST(Replay, Fills_the_documented_fields) {
  const CommandResult result =
      zeroproof("replay --json " + bundled(kDeepSpeed + "mlp__z3_fp32_w2_r0.jsonl.gz"));
  ASSERT_EQ(0, result.exit_code) << result.out;
  const Json document = Json::parse(result.out);
  EXPECT_EQ("zeroproof.replay/1", document["schema"]);
  const Json summary = {{"traces", 1}, {"ok", 1}, {"mismatched", 0}, {"unreadable", 0}};
  EXPECT_EQ(summary, document["summary"]);
  const Json& levels = document["traces"][0]["levels"];
  EXPECT_EQ("deepspeed-0.18.7", levels["state"]["policy"]);
  EXPECT_EQ("graph_task_callback", levels["state"]["mode"]);
  EXPECT_GT(levels["state"]["calls"], 0);
  EXPECT_EQ(levels["state"]["calls"], levels["state"]["matched"]);
  EXPECT_TRUE(levels["state"]["first_mismatch"].is_null());
  EXPECT_EQ("mlp", document["traces"][0]["program"]);
}

TEST(Replay, Takes_the_policy_from_the_header_unless_one_is_named) {
  const std::string script = bundled("manager-scripts/manager_pr7780_fallback_1040.jsonl.gz");
  const auto state = [&](const std::string& flags) {
    return Json::parse(zeroproof("replay --json --levels state " + flags + script)
                           .out)["traces"][0]["levels"]["state"];
  };
  EXPECT_EQ("deepspeed-0.18.5", state("")["policy"]);
  EXPECT_EQ("count_fallback", state("")["mode"]);
  EXPECT_EQ("deepspeed-pr8245", state("--policy deepspeed-pr8245 ")["policy"]);
  const CommandResult whatif = zeroproof("replay --mode graph_task_callback " + script);
  EXPECT_EQ(1, whatif.exit_code) << whatif.out;
  EXPECT_EQ(2, zeroproof("replay --policy exact " + script).exit_code);
}

// Stage 1 reduces at boundaries alone, stage 3's step clears the epilogue's flag, and a coalesced
// block sets it after its backwards.
TEST(Replay, Derives_every_manager_call_of_a_recording_of_ours) {
  for (const char* scenario : {"gas2", "coalesced", "unmanaged"}) {
    for (const char* stage : {"1", "2", "3"}) {
      const ScratchFolder scratch;
      zeroproof(
          fmt::format("record --scenario {} --stage {} --backward tensor --trace {} "
                      "--policy deepspeed-0.19.6",
                      scenario, stage, scratch / "run.jsonl"));
      const Json found =
          Json::parse(zeroproof("replay --json --levels state " + (scratch / "")).out);
      ASSERT_FALSE(found["traces"].empty()) << scenario << " " << stage;
      for (const Json& trace : found["traces"]) {
        const Json& state = trace["levels"]["state"];
        EXPECT_GT(state["calls"], 0) << scenario << " " << stage;
        EXPECT_EQ(state["calls"], state["matched"]) << scenario << " " << stage << state;
      }
    }
  }
}

// What the recorder writes for a DeepSpeed before the hook bookkeeping.
TEST(Replay, Has_no_state_level_for_a_header_without_a_policy) {
  const ScratchFolder scratch;
  write_file(scratch / "old.jsonl",
             R"({"rec":"header","format":"hooktrace","version":[1,0],"rank":0,"world":1,)"
             R"("clock":{"unit":"ns","mono0":1,"unix0":2},"producer":{"tool":"test"},)"
             R"("program":"old","policy":"none"})"
             "\n");
  const CommandResult result = zeroproof("replay --json --levels state " + (scratch / "old.jsonl"));
  const Json trace = Json::parse(result.out)["traces"][0];
  EXPECT_EQ("none", trace["levels"]["state"]["policy"]) << trace;
  EXPECT_EQ(0, trace["levels"]["state"]["calls"]);
}

TEST(Replay, Of_all_bundled_traces_repeats_byte_for_byte) {
  const std::string arguments = "replay --json --progress none " + bundled("");
  const CommandResult first = zeroproof(arguments);
  EXPECT_EQ(first.out, zeroproof(arguments).out);
  EXPECT_TRUE(Json::accept(first.out));
}

TEST(Replay, Finds_a_state_that_was_changed_by_hand) {
  const ScratchFolder scratch;
  const std::string trace = bundled(kDeepSpeed + "mlp__z3_fp32_w2_r0.jsonl.gz");
  run_shell("zcat " + trace + " | sed '0,/\"hooks_fired_this_backward\":1/s//\"hooks_fired_this_" +
            "backward\":2/' > " + (scratch / "t.jsonl"));
  const CommandResult result = zeroproof("replay --levels state --json " + (scratch / "t.jsonl"));
  EXPECT_EQ(1, result.exit_code) << result.out;
  const Json document = Json::parse(result.out);
  const Json& state = document["traces"][0]["levels"]["state"];
  EXPECT_LT(state["matched"], state["calls"]);
  EXPECT_GT(state["first_mismatch"]["lc"], 0);
}

TEST(Replay, Writes_junit_and_json_files) {
  const ScratchFolder scratch;
  const std::string trace = bundled(kDeepSpeed + "mlp__z3_fp32_w2_r0.jsonl.gz");
  const CommandResult result = zeroproof("replay " + trace + " --out " + (scratch / "o") +
                                         " --junit " + (scratch / "junit.xml"));
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_EQ("seed 0", result.out.substr(0, 6));
  EXPECT_TRUE(Json::accept(read_file(scratch / "o/replay.json")));
  const std::string xml = read_file(scratch / "junit.xml");
  EXPECT_NE(std::string::npos, xml.find("<testcase classname=\"" + trace)) << xml;
  EXPECT_EQ(tinyxml2::XML_SUCCESS, tinyxml2::XMLDocument().Parse(xml.c_str()));
}

// Runs the last line of a failure in a shell.
CommandResult reproduce(const std::string& output) {
  const std::string line = last_line(output);
  const std::string start = "reproduce: ";
  EXPECT_EQ(0u, line.find(start)) << line;
  return run_shell(line.substr(std::min(start.size(), line.size())));
}

TEST(Reproduce, Of_replay_gives_the_same_verdict) {
  const CommandResult first =
      zeroproof("replay --progress none " +
                bundled(kDeepSpeed + "exception_recovery__z3_fp32_w1_r0.jsonl.gz"));
  EXPECT_EQ(1, first.exit_code);
  const CommandResult again = reproduce(first.out);
  EXPECT_EQ(1, again.exit_code);
  EXPECT_EQ(first.out, again.out);
}

TEST(Reproduce, Of_explore_falsifies_the_same_properties) {
  const CommandResult first = zeroproof("explore S2 --policy deepspeed-0.18.3");
  EXPECT_EQ(1, first.exit_code);
  EXPECT_NE(std::string::npos, first.out.find("FALSIFIED P2 epilogue.once_after_last_hook"));
  const CommandResult again = reproduce(first.out);
  EXPECT_EQ(1, again.exit_code);
  EXPECT_NE(std::string::npos, again.out.find("reproduced: P2 P7")) << again.out;
  const std::string line = last_line(first.out).substr(11);
  const CommandResult other = run_shell(line + " --policy deepspeed-0.18.7");
  EXPECT_EQ(0, other.exit_code) << other.out;
  EXPECT_NE(std::string::npos, other.out.find("HELD"));
}

TEST(Reproduce, Says_when_a_schedule_no_longer_shows_what_it_promises) {
  const ScratchFolder scratch;
  zeroproof("explore S2 --policy deepspeed-0.18.3 --out " + (scratch / "o"));
  const Json found = Json::parse(read_file(scratch / "o/explore.json"));
  EXPECT_EQ("falsified", found["runs"][0]["status"]);
  // Through engine.backward the epilogue comes in the end, so the property holds again.
  const std::string path = scratch / "o/S2-deepspeed-0.18.3-P2-min.json";
  Json scenario = Json::parse(read_file(path));
  EXPECT_EQ(1, zeroproof("replay " + (scratch / "o/S2-deepspeed-0.18.3-P2-min.zps")).exit_code);
  for (Json& statement : scenario["program"]) {
    if (statement["do"] == "backward") statement["via"] = "engine";
  }
  write_file(path, scenario.dump());
  const CommandResult changed =
      zeroproof("replay " + (scratch / "o/S2-deepspeed-0.18.3-P2-min.zps"));
  EXPECT_EQ(4, changed.exit_code) << changed.out << changed.err;
  EXPECT_NE(std::string::npos, changed.out.find("NOT REPRODUCED")) << changed.out;
}

TEST(Explore, Counts_the_orders_it_covered) {
  const Json run = Json::parse(zeroproof("explore S1 --json").out)["runs"][0];
  EXPECT_EQ("24", run["orders_explored"]);
  EXPECT_EQ("24", run["linear_extensions"]);
  EXPECT_EQ("held", run["status"]);
}

TEST(Explore, Prints_a_table_for_many_and_repeats_byte_for_byte) {
  const std::string arguments = "explore S1 S2 --policy all --progress none";
  const CommandResult table = zeroproof(arguments);
  EXPECT_EQ(1, table.exit_code);
  EXPECT_NE(std::string::npos, table.out.find("scenario  orders  deepspeed-0.18.3")) << table.out;
  for (const std::string more : {" --json", " --json --scheduler random --seed 7 --budget 50x"}) {
    const CommandResult first = zeroproof(arguments + more);
    EXPECT_TRUE(Json::accept(first.out));
    EXPECT_EQ(first.out, zeroproof(arguments + more).out);
  }
}

TEST(Explore, Is_inconclusive_when_the_budget_ends_before_the_space) {
  const CommandResult result = zeroproof("explore S16 --budget 5x");
  EXPECT_EQ(3, result.exit_code) << result.out;
  EXPECT_NE(std::string::npos, result.out.find("inconclusive"));
}

TEST(Explore, Writes_a_trace_that_replay_agrees_with) {
  const ScratchFolder scratch;
  const std::string trace = scratch / "run.jsonl.gz";
  EXPECT_EQ(0, zeroproof("explore S2 --policy deepspeed-0.18.7 --trace-out " + trace).exit_code);
  const CommandResult replayed = zeroproof("replay --json " + trace);
  EXPECT_EQ(0, replayed.exit_code) << replayed.out;
  const Json document = Json::parse(replayed.out);
  const Json& state = document["traces"][0]["levels"]["state"];
  EXPECT_GT(state["calls"], 0);
  EXPECT_EQ(state["calls"], state["matched"]);
  // A policy without a manager leaves no state to compare.
  EXPECT_EQ(0, zeroproof("explore S2 --policy exact --trace-out " + trace).exit_code);
  const Json exact = Json::parse(zeroproof("replay --json " + trace).out);
  EXPECT_EQ("ok", exact["traces"][0]["status"]) << exact.dump();
  EXPECT_EQ(0, exact["traces"][0]["levels"]["state"]["calls"]);
}

TEST(Explore, Leaves_with_130_and_a_document_when_interrupted) {
  const CommandResult result = run_shell("timeout --preserve-status -s INT 1 " ZP_BINARY
                                         " explore S19 --set N=64 --json --progress none");
  EXPECT_EQ(130, result.exit_code) << result.err;
  EXPECT_TRUE(Json::accept(result.out)) << result.out.substr(0, 200);
}

// The other programs of a folder are compared all the same, and the run is named.
TEST(Conform, Goes_on_after_a_run_that_lacks_the_trace_of_a_rank) {
  const ScratchFolder scratch;
  const std::string alone = "mlp__z1_fp32_w2_r0.jsonl.gz";
  const std::string program = "P01_mlp2.jsonl.gz";
  std::filesystem::copy(bundled("deepspeed-edaa7221-cuda/" + alone), scratch / alone);
  std::filesystem::copy(bundled("pytorch-2.11.0-cpu/" + program), scratch / program);
  const CommandResult result = zeroproof("conform --json " + (scratch / "."));
  EXPECT_EQ(3, result.exit_code) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(1, document["summary"]["agreed"]);
  EXPECT_EQ(1, document["summary"]["incomplete"]);
  for (const Json& run : document["programs"]) {
    if (run["status"] != "incomplete") continue;
    EXPECT_EQ(alone, run["program"]);
    EXPECT_NE(std::string::npos, run["detail"].get<std::string>().find("_r1."));
  }
  EXPECT_EQ(5, zeroproof("conform " + (scratch / alone)).exit_code);
}

TEST(Verify, Holds_in_every_part) {
  const ScratchFolder scratch;
  const CommandResult result =
      zeroproof("verify --quick --json --progress none --out " + (scratch / "report"));
  EXPECT_EQ(0, result.exit_code) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ("held", document["status"]);
  for (const Json& part : document["parts"])
    EXPECT_TRUE(part["status"] == "held" || part["status"] == "caught") << part["name"];
  const Json& engine = document["parts"][4];
  EXPECT_EQ("engine", engine["name"]);
  EXPECT_GE(engine["explorations"], 100);
  EXPECT_EQ(engine["explorations"], engine["executions"]);
  const Json& conform = document["parts"][1];
  EXPECT_EQ("conform", conform["name"]);
  EXPECT_EQ(310, conform["agreed"]);
  EXPECT_EQ(conform["runs"], conform["agreed"]);
  for (const char* name : {"report/report.json", "report/junit.xml", "report/report.md"}) {
    EXPECT_NE("", read_file(scratch / name)) << name;
  }
  const std::string page = read_file(scratch / "report/index.html");
  EXPECT_NE(std::string::npos, page.find("8 of 8 parts hold, each on a small sample"));
  const std::size_t at = page.find("state.depth_zero_at_quiet");
  EXPECT_LT(page.find("epilogue.exactly_once"), at) << "the list is in the order of numbers";
  EXPECT_LT(at, page.find("state.clean_after_abort"));
}

TEST(Verify, Refuses_to_expect_a_property_that_is_none) {
  const ScratchFolder scratch;
  const std::string name = "exception_recovery__z3_fp32_w1_r0.jsonl.gz";
  std::filesystem::create_directories(scratch / "t");
  std::filesystem::copy_file(bundled(kDeepSpeed + name), scratch / ("t/" + name));
  write_file(scratch / "t/expected.json", "{\"falsified\": {\"" + name + "\": [\"P400\"]}}");
  EXPECT_EQ(2, zeroproof("verify --quick --progress none --traces " + (scratch / "t") + " --out " +
                         (scratch / "o"))
                   .exit_code);
}

TEST(Diff, Exits_with_0_for_the_same_order_and_1_for_another) {
  const std::string a = bundled("pytorch-2.11.0-cpu/P07_heap_ties.jsonl.gz");
  const std::string b = bundled("pytorch-2.11.0-cpu/P11_multi_root.jsonl.gz");
  EXPECT_EQ(0, zeroproof("diff " + a + " " + a).exit_code);
  const CommandResult differ = zeroproof("diff --json " + a + " " + b);
  EXPECT_EQ(1, differ.exit_code);
  EXPECT_FALSE(Json::parse(differ.out)["same"]);
}

TEST(Convert, Goes_both_ways_without_a_change_and_to_perfetto) {
  const ScratchFolder scratch;
  const std::string trace = bundled(kDeepSpeed + "mlp__z3_fp32_w2_r0.jsonl.gz");
  EXPECT_EQ(0, zeroproof("convert " + trace + " " + (scratch / "t.jsonl")).exit_code);
  EXPECT_EQ(
      0, zeroproof("convert " + (scratch / "t.jsonl") + " " + (scratch / "t.jsonl.gz")).exit_code);
  EXPECT_EQ(read_file(scratch / "t.jsonl"), run_shell("zcat " + trace).out);
  EXPECT_EQ(read_file(scratch / "t.jsonl"), run_shell("zcat " + (scratch / "t.jsonl.gz")).out);
  EXPECT_EQ(0, zeroproof("convert " + trace + " " + (scratch / "p.perfetto.json")).exit_code);
  EXPECT_TRUE(Json::parse(read_file(scratch / "p.perfetto.json")).contains("traceEvents"));
  EXPECT_EQ(2, zeroproof("convert " + trace + " /nonexistent/t.jsonl").exit_code);
}

TEST(Show, Filters_events) {
  const std::string trace = bundled(kDeepSpeed + "mlp__z3_fp32_w2_r0.jsonl.gz");
  const Json document =
      Json::parse(zeroproof("show --json --kind engine --from 10 --to 200 " + trace).out);
  EXPECT_EQ("mlp", document["header"]["program"]);
  ASSERT_FALSE(document["events"].empty());
  for (const Json& event : document["events"]) {
    EXPECT_EQ("engine", event["k"].get<std::string>().substr(0, 6));
    EXPECT_GE(event["lc"], 10);
    EXPECT_LE(event["lc"], 200);
  }
  EXPECT_EQ(0, zeroproof("show " + trace).exit_code);
}

}  // namespace
}  // namespace zeroproof::cli_test
