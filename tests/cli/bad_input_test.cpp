// Every kind of bad input: one clear line that names the place, the right exit code, and what was
// read before the fault.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace zeroproof::cli_test {
namespace {

const std::string kHeader =
    R"({"rec":"header","format":"hooktrace","version":[1,0],"rank":0,"world":1,)"
    R"("clock":{"unit":"ns","source":"virtual","mono0":0,"unix0":0},)"
    R"("producer":{"tool":"test"},"program":"bad"})"
    "\n";
const std::string kThread = R"({"rec":"thread","th":0,"name":"MainThread","main":true})"
                            "\n";
const std::string kMark =
    R"({"rec":"ev","lc":1,"t":1,"r":0,"th":0,"k":"mark","gt":-1,"d":0,"label":"a"})"
    "\n";
const std::string kEnd = R"({"rec":"end","events":1,"records":2})"
                         "\n";

struct BadTrace {
  std::string name;
  std::string content;
  std::string expected;  // part of the trace's error, after the path
};

std::string graph(const std::string& next_of_second) {
  return R"({"rec":"graph","call":0,"roots":[[1,0]],"accumulate":true,"nodes":[)"
         R"({"id":1,"name":"A","seq":2,"next":[[2,0]],"param":null},)"
         R"({"id":2,"name":"B","seq":1,"next":)" +
         next_of_second + R"(,"param":null}]})" + "\n";
}

std::vector<BadTrace> bad_traces() {
  return {
      {"malformed", kHeader + kThread + "{\"rec\":\"ev\",\n" + kEnd, ":3: "},
      {"truncated", kHeader + kThread + kMark, "truncated: no end record"},
      {"cut_line", kHeader + kThread + kMark + R"({"rec":"ev","lc":2,)", "truncated"},
      {"empty", "", "empty file"},
      {"no_trace", "{\"a\":1}\n", "not a hooktrace file"},
      {"text", "hello\n", "not a hooktrace file"},
      {"png", "\x89PNG\r\n\x1a\n", "not a hooktrace file"},
      {"nan",
       kHeader + R"({"rec":"tensor","role":"grad","name":"p","shape":[1],"value":[NaN]})" + "\n",
       ":2: "},
      {"major", "{\"rec\":\"header\",\"format\":\"hooktrace\",\"version\":[2,0]}\n", "version"},
      {"no_clock_order", kHeader + kThread + kMark + kMark + kEnd, ":4: lc 1 after lc 1"},
      {"cycle", kHeader + kThread + graph("[[1,0]]") + kEnd, ":3: "},
      {"no_node", kHeader + kThread + graph("[[7,0]]") + kEnd, ":3: "},
      {"bad_policy",
       R"({"rec":"header","format":"hooktrace","version":[1,0],"rank":0,"world":1,)"
       R"("clock":{"unit":"ns","source":"virtual","mono0":0,"unix0":0},)"
       R"("producer":{"tool":"test"},"program":"bad","policy":"pr1"})"
       "\n",
       ":1: header: unknown policy 'pr1'"},
      {"huge_line", kHeader + kThread + std::string(65u << 20, 'x') + "\n", ":3: "},
  };
}

TEST(BadTrace, Is_one_line_with_the_place_and_exit_5) {
  for (const BadTrace& bad : bad_traces()) {
    const ScratchFolder scratch;
    const std::string path = scratch / (bad.name + ".jsonl");
    write_file(path, bad.content);
    const CommandResult result = zeroproof("replay --json " + path);
    EXPECT_EQ(5, result.exit_code) << bad.name << result.err;
    const auto document = nlohmann::json::parse(result.out);
    EXPECT_EQ(1, document["summary"]["unreadable"]);
    const std::string error = document["traces"][0]["error"];
    EXPECT_EQ(0u, error.find(path)) << error;
    EXPECT_NE(std::string::npos, error.find(bad.expected)) << bad.name << ": " << error;
    EXPECT_EQ(std::string::npos, error.find('\n')) << error;
    EXPECT_LT(error.size(), 400u) << error;
    // Show and convert read no graphs and no policies.
    if (bad.name == "cycle" || bad.name == "no_node" || bad.name == "bad_policy") continue;
    EXPECT_EQ(5, zeroproof("show " + path).exit_code) << bad.name;
    EXPECT_EQ(5, zeroproof("diff " + path + " " + path).exit_code) << bad.name;
    EXPECT_EQ(5, zeroproof("convert " + path + " " + (scratch / "out.jsonl")).exit_code);
    EXPECT_FALSE(std::filesystem::exists(scratch / "out.jsonl")) << bad.name;
  }
}

TEST(BadTrace, Reports_what_stands_before_the_fault_and_the_other_traces) {
  const ScratchFolder scratch;
  write_file(scratch / "a.jsonl", kHeader + kThread + kMark + kEnd);
  write_file(scratch / "b.jsonl", kHeader + kThread + kMark + "{\n");
  const CommandResult result = zeroproof("replay --json " + (scratch / ""));
  EXPECT_EQ(5, result.exit_code);
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_EQ(1, document["summary"]["ok"]);
  EXPECT_EQ(1, document["summary"]["unreadable"]);
  EXPECT_EQ(1, document["traces"][1]["events"]);
  EXPECT_TRUE(document["traces"][1]["levels"].contains("properties"));
}

TEST(BadPath, Names_the_path_and_exits_with_5) {
  const ScratchFolder scratch;
  const CommandResult missing = zeroproof("show " + (scratch / "missing.jsonl"));
  EXPECT_EQ(5, missing.exit_code);
  EXPECT_NE(std::string::npos, missing.err.find("missing.jsonl")) << missing.err;
  const CommandResult folder = zeroproof("replay " + (scratch / ""));
  EXPECT_EQ(5, folder.exit_code);
  EXPECT_NE(std::string::npos, folder.err.find("holds no *.jsonl")) << folder.err;
  const CommandResult shown = zeroproof("show " + (scratch / ""));
  EXPECT_EQ(5, shown.exit_code);
  EXPECT_NE(std::string::npos, shown.err.find("holds no *.jsonl")) << shown.err;
  const CommandResult device = zeroproof("replay --json /dev/null");
  EXPECT_EQ(5, device.exit_code);
}

TEST(BadScenario, Names_the_json_pointer_and_exits_with_2) {
  const ScratchFolder scratch;
  const std::string head = R"({"schema":"zeroproof.scenario/1","id":"x","title":"t",)";
  const std::string engines = R"("engines":[{"name":"e","params":["p"]}],)";
  const std::pair<std::string, std::string> cases[] = {
      {"{", "line 1"},
      {head + R"("source":"s","enginez":[]})", "enginez"},
      {head + R"("source":"s",)" + engines +
           R"("tasks":{"b":[{"id":"o","seq":1,"next":["o"]}]},"program":[]})",
       "/tasks/b/0"},
      {head + R"("source":"s",)" + engines + R"("tasks":{},"program":[{"do":"sleep"}]})",
       "/program/0/do"},
  };
  for (const auto& [content, expected] : cases) {
    write_file(scratch / "s.json", content);
    const CommandResult result = zeroproof("explore " + (scratch / "s.json"));
    EXPECT_EQ(2, result.exit_code) << content;
    EXPECT_EQ("", result.out);
    EXPECT_NE(std::string::npos, result.err.find("s.json")) << result.err;
    EXPECT_NE(std::string::npos, result.err.find(expected)) << result.err;
  }
  const CommandResult unknown = zeroproof("explore S2bb");
  EXPECT_EQ(2, unknown.exit_code);
  EXPECT_NE(std::string::npos, unknown.err.find("did you mean 'S2b'?")) << unknown.err;
}

TEST(BadSchedule, Is_refused) {
  const std::string start = "replay zps1:S1:";
  EXPECT_EQ(5, zeroproof(start + "policy=pr7665:0:3x0").exit_code);
  const ScratchFolder scratch;
  write_file(scratch / "x.zps", "zps9:S1:::0:00000000\n");
  const CommandResult version = zeroproof("replay " + (scratch / "x.zps"));
  EXPECT_EQ(5, version.exit_code);
  EXPECT_NE(std::string::npos, version.err.find("x.zps")) << version.err;
}

TEST(BadBudget, Is_refused) {
  for (const char* budget : {"10", "x", "0x", "10y", "s"}) {
    const CommandResult result = zeroproof(std::string("explore S1 --budget ") + budget);
    EXPECT_EQ(2, result.exit_code) << budget;
    EXPECT_NE(std::string::npos, result.err.find("--budget")) << result.err;
  }
  EXPECT_EQ(2, zeroproof("explore S1 --set N=5").exit_code);
  EXPECT_EQ(2, zeroproof("explore S1 --set M=4").exit_code);
  EXPECT_EQ(2, zeroproof("explore S1 --mode count_fallback").exit_code);  // exact never counts
}

}  // namespace
}  // namespace zeroproof::cli_test
