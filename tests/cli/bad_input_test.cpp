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

// Shell commands that write one hostile file, and what the answer names.
struct HostileFile {
  std::string name;
  std::string producer;  // prints the file
  int exit_code = 5;
  std::string expected;  // part of stdout
};

std::vector<HostileFile> hostile_files() {
  const std::string blanks = "head -c 80M /dev/zero | tr '\\0' ' '";
  const std::string slices =
      "'{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"c10d::allreduce_\",\"ts\":1}]'";
  return {
      {"blanks.json.gz", blanks + " | gzip -1", 5, "longer than 67108864 bytes"},
      {"blanks_inside.json.gz", "{ printf '{\"entries\":['; " + blanks + "; } | gzip -1", 5,
       "longer than 16777216 bytes, which is the limit"},
      {"blank_lines.jsonl.gz", "head -c 80M /dev/zero | tr '\\0' '\\n' | gzip -1", 5,
       "more than 67108864 bytes of blank lines"},
      {"string.json.gz",
       "{ printf '{\"traceEvents\":[\"'; head -c 80M /dev/zero | tr '\\0' 'a'; } | gzip -1", 5,
       "longer than 16777216 bytes, which is the limit"},
      {"list_beside.json.gz",
       "{ printf '{\"schemaVersion\":1,\"x\":[0'; yes ',1234567' | head -c 80M | tr -d '\\n'; "
       "printf '],'; printf %s " +
           slices + " | cut -c2-; printf '}'; } | gzip -1",
       0, "kineto, rank 0: 1 collective"},
      {"deep.json", "printf '{\"entries\":['; head -c 1M /dev/zero | tr '\\0' '['", 5,
       "nested deeper than 256 levels"},
      {"cut_rank_0.json", "printf %s " + slices, 5, "truncated"},
      {"rank.json", "printf '{\"traceEvents\":[],\"distributedInfo\":{\"rank\":99999999999}}'", 5,
       "rank 99999999999 is not from 0 to 1048575"},
  };
}

// Under a sanitizer the address space is reserved and cannot be limited.
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr const char* kMemoryLimit = "";
#else
constexpr const char* kMemoryLimit = "ulimit -v 800000; ";
#endif

TEST(HostileFile, Is_read_or_refused_in_bounded_memory) {
  for (const HostileFile& hostile : hostile_files()) {
    const ScratchFolder scratch;
    const std::string path = scratch / hostile.name;
    ASSERT_EQ(0, run_shell("{ " + hostile.producer + "; } > " + path).exit_code) << hostile.name;
    const CommandResult result = run_shell(kMemoryLimit + std::string(ZP_BINARY " replay ") + path);
    EXPECT_EQ(hostile.exit_code, result.exit_code) << hostile.name << result.out << result.err;
    EXPECT_NE(std::string::npos, result.out.find(hostile.expected))
        << hostile.name << ": " << result.out << result.err;
  }
}

// `timeout` sends the signal after a second and kills after ten: 137 would mean that it was
// ignored.
TEST(Interrupt, Ends_any_read_soon) {
  const ScratchFolder scratch;
  const std::string pipe = scratch / "pipe";
  ASSERT_EQ(0, run_shell("mkfifo " + pipe).exit_code);
  const std::string endless = "{ printf '{\"traceEvents\":[{}'; yes ',{}'; } 2>/dev/null | ";
  const std::string held = "{ printf '{\"traceEvents\":['; sleep 3; } | ";
  const std::string stopped = "timeout --preserve-status -k 10 -s ";
  for (const std::string signal : {"INT", "TERM"}) {
    const std::string command = stopped + signal + " 1 " ZP_BINARY " ";
    EXPECT_EQ(130, run_shell(command + "replay " + pipe).exit_code) << signal;
    EXPECT_EQ(130, run_shell(command + "show " + pipe).exit_code) << signal;
    EXPECT_EQ(130, run_shell(endless + command + "replay /dev/stdin").exit_code) << signal;
    EXPECT_EQ(130, run_shell(held + command + "replay /dev/stdin").exit_code) << signal;
  }
}

TEST(Pipe, Is_read_once_whatever_comes_out_of_it) {
  const std::string dumps = ZP_SOURCE_DIR "/tests/data/dumps/";
  for (const std::string name :
       {"fr_ok_rank_0.json", "fr_ok_rank_0.pickle", "kineto_ok_rank_0.json.gz"}) {
    const CommandResult result =
        run_shell("cat " + dumps + name + " | " ZP_BINARY " replay /dev/stdin");
    EXPECT_EQ(0, result.exit_code) << result.out << result.err;
    EXPECT_NE(std::string::npos, result.out.find("/dev/stdin")) << result.out;
  }
  const ScratchFolder scratch;
  write_file(scratch / "a.jsonl", kHeader + kThread + kMark + kEnd);
  const CommandResult trace =
      run_shell("cat " + (scratch / "a.jsonl") + " | " ZP_BINARY " replay /dev/stdin");
  EXPECT_EQ(0, trace.exit_code) << trace.out << trace.err;
  const CommandResult twice =
      run_shell("cat " + (scratch / "a.jsonl") + " | " ZP_BINARY " diff /dev/stdin /dev/stdin");
  EXPECT_EQ(5, twice.exit_code);
  EXPECT_NE(std::string::npos, twice.err.find("was read already")) << twice.err;
}

TEST(Dump, Is_named_by_the_verbs_that_read_hooktraces) {
  const ScratchFolder scratch;
  const std::pair<std::string, std::string> cases[] = {
      {"fr_ok_rank_0.json", "a flight-recorder dump (JSON)"},
      {"fr_ok_rank_0.pickle", "a flight-recorder dump (pickle)"},
      {"kineto_ok_rank_0.json.gz", "a Kineto trace (torch.profiler)"}};
  for (const auto& [name, words] : cases) {
    const std::string path = ZP_SOURCE_DIR "/tests/data/dumps/" + name;
    for (const std::string& line : {"show " + path, "diff " + path + " " + path,
                                    "convert " + path + " " + (scratch / "out.jsonl")}) {
      const CommandResult result = zeroproof(line);
      EXPECT_EQ(5, result.exit_code) << line;
      EXPECT_NE(std::string::npos, result.err.find(words)) << line << result.err;
      EXPECT_NE(std::string::npos, result.err.find("zeroproof replay")) << result.err;
    }
  }
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
