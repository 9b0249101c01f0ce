#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/trace/perfetto.h"

namespace zeroproof {
namespace {

using nlohmann::json;

struct Exported {
  json document;
  PerfettoCounts counts;
};

Exported export_files(const std::vector<std::string>& paths) {
  NameTable names;
  std::vector<TraceReader> readers;
  for (const std::string& path : paths) {
    auto reader = TraceReader::open(ZP_SOURCE_DIR "/tests/traces/" + path, names);
    EXPECT_TRUE(reader) << reader.error().text;
    readers.push_back(std::move(*reader));
  }
  std::string text;
  const auto counts = export_perfetto(readers, names, [&text](std::string_view part) {
    text += part;
    return Result<void>();
  });
  EXPECT_TRUE(counts);
  return {json::parse(text), *counts};
}

// Every B has its E on the thread; names nest because E closes the last B.
void expect_nested(const json& events) {
  std::map<std::pair<int, int>, int> depth;
  for (const json& event : events) {
    const std::string phase = event.at("ph");
    if (phase != "B" && phase != "E") continue;
    int& open = depth[{event.at("pid").get<int>(), event.at("tid").get<int>()}];
    open += phase == "B" ? 1 : -1;
    ASSERT_GE(open, 0) << event;
  }
  for (const auto& [thread, open] : depth) EXPECT_EQ(open, 0) << "thread " << thread.second;
}

TEST(Perfetto, Slices_nest_even_where_a_recompute_stops_early) {
  const Exported out = export_files({"pytorch-2.11.0-cpu/P25_ckpt_nonreentrant_tail.jsonl.gz"});
  expect_nested(out.document.at("traceEvents"));
  int recomputes = 0;
  for (const json& event : out.document.at("traceEvents")) {
    const std::string name = event.value("name", "");
    recomputes += name.rfind("RECOMPUTE ", 0) == 0 ? 1 : 0;
  }
  EXPECT_GT(recomputes, 0);
}

TEST(Perfetto, Closes_what_an_exception_left_open) {
  const Exported out = export_files({"pytorch-2.11.0-cpu/P47_exception_in_callback.jsonl.gz"});
  expect_nested(out.document.at("traceEvents"));
  EXPECT_GT(out.counts.unfinished, 0U);
}

TEST(Perfetto, Ranks_are_processes_and_async_events_pair) {
  const Exported out = export_files({"deepspeed-edaa7221-cuda/mlp__z3_fp32_w2_r0.jsonl.gz",
                                     "deepspeed-edaa7221-cuda/mlp__z3_fp32_w2_r1.jsonl.gz"});
  const json& events = out.document.at("traceEvents");
  expect_nested(events);
  std::set<int> ranks;
  std::map<std::string, int> open;
  int counters = 0;
  int flows = 0;
  for (const json& event : events) {
    const std::string phase = event.at("ph");
    ranks.insert(event.at("pid").get<int>());
    if (phase == "C") ++counters;
    if (phase == "s") ++flows;
    if (phase == "f") --flows;
    if (phase == "b" || phase == "e") {
      int& count = open[event.at("id")];
      count += phase == "b" ? 1 : -1;
      EXPECT_TRUE(count == 0 || count == 1) << event;
    }
    if (event.contains("args") && event.at("args").contains("lc")) {
      EXPECT_FALSE(event.at("args").contains("rec"));
    }
    if (event.contains("ts")) {
      EXPECT_GE(event.at("ts").get<double>(), 0.0);
    }
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  EXPECT_GT(counters, 40);
  EXPECT_EQ(flows, 0) << "each queued callback ran";
  EXPECT_GT(open.size(), 50U);
}

// HTA and people's scripts read torch.profiler's names.
TEST(Perfetto, Collectives_carry_kinetos_arguments) {
  const Exported out = export_files({"deepspeed-edaa7221-cuda/mlp__z3_fp32_w2_r1.jsonl.gz"});
  const auto args_of = [&](const std::string& name, int number) {
    for (const json& event : out.document.at("traceEvents")) {
      const bool is_it = event.at("ph") == "b" && event.value("name", "") == name;
      if (is_it && event.at("args").at("cseq") == number) return event.at("args");
    }
    return json();
  };
  const json gather = args_of("all_gather_into_tensor", 0);
  EXPECT_EQ(gather.value("Collective name", ""), "_allgather_base");
  EXPECT_EQ(gather.value("dtype", ""), "Float");
  EXPECT_EQ(gather.value("bytes", 0), 120);
  EXPECT_EQ(gather.value("Out msg nelems", 0), 30) << "the whole";
  EXPECT_EQ(gather.value("In msg nelems", 0), 15) << "of one of two ranks";
  EXPECT_EQ(gather.value("Group size", 0), 2);
  EXPECT_EQ(gather.value("Process Group Name", ""), "g0_1");
  EXPECT_EQ(gather.value("Process Group Ranks", ""), "[0, 1]");
  EXPECT_EQ(gather.value("Rank", -1), 1);
  EXPECT_EQ(gather.value("Seq", -1), 0);
  const json scatter = args_of("reduce_scatter_tensor", 4);
  EXPECT_EQ(scatter.value("Collective name", ""), "_reduce_scatter_base");
  EXPECT_EQ(scatter.value("In msg nelems", 0), 2 * scatter.value("Out msg nelems", 0));
  EXPECT_GT(scatter.value("In msg nelems", 0), 0);
}

}  // namespace
}  // namespace zeroproof
