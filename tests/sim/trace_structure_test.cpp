#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sim/trace/reader.h"
#include "sim/trace/structure_check.h"

namespace zeroproof {
namespace {

std::vector<std::string> findings(Result<TraceReader> reader, const NameTable& names) {
  EXPECT_TRUE(reader) << reader.error().text;
  StructureCheck check(names);
  while (true) {
    const auto record = reader->next();
    if (!record) return {record.error().text};
    if (*record == nullptr) break;
    check.on_record(**record);
  }
  check.finish();
  std::vector<std::string> out;
  for (const StructureFinding& finding : check.findings()) {
    out.push_back(finding.rule + "@" + std::to_string(finding.line_number));
  }
  return out;
}

TEST(StructureCheck, Finds_nothing_in_any_bundled_trace) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(ZP_SOURCE_DIR "/tests/traces")) {
    if (entry.path().string().find(".jsonl") == std::string::npos) continue;
    NameTable names;
    EXPECT_THAT(findings(TraceReader::open(entry.path(), names), names), ::testing::IsEmpty())
        << entry.path();
  }
}

// Lines 2, 3, … of a trace; each without its lc, which is its number.
std::vector<std::string> check_lines(const std::vector<std::string>& lines, bool has_end = true) {
  std::string text = R"({"rec":"header","format":"hooktrace","version":[1,0],"rank":0,"world":1,)"
                     R"("clock":{"unit":"ns","mono0":1,"unix0":2}})"
                     "\n";
  int lc = 0;
  for (const std::string& line : lines) {
    const bool is_record = line.find("\"rec\"") != std::string::npos;
    lc += is_record ? 0 : 1;
    text += is_record ? line
                      : R"({"rec":"ev","lc":)" + std::to_string(lc) + R"(,"r":0,"gt":-1,"d":0,)" +
                            line + "}";
    text += '\n';
  }
  if (has_end) {
    text += R"({"rec":"end","events":)" + std::to_string(lc) + R"(,"records":)" +
            std::to_string(lines.size()) + "}\n";
  }
  NameTable names;
  return findings(TraceReader::from_bytes(text, "t", names), names);
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StructureCheck, Wants_times_of_one_thread_not_to_decrease) {
  const std::string mark = R"("k":"mark","label":"x",)";
  EXPECT_THAT(
      check_lines({mark + R"("th":0,"t":9)", mark + R"("th":1,"t":3)", mark + R"("th":0,"t":8)"}),
      ElementsAre("time.backwards@4"));
}

TEST(StructureCheck, Pairs_graph_tasks_by_call) {
  const std::string at = R"("th":0,"t":1,)";
  const std::string begin = at + R"("k":"gt.begin","call":)";
  const std::string end = at + R"("k":"gt.end","call":)";
  EXPECT_THAT(check_lines({begin + "0", begin + "1", end + "1", end + "0"}), IsEmpty());
  EXPECT_THAT(check_lines({begin + "0", end + "1", begin + "2"}),
              ElementsAre("graph_task.end@3", "graph_task.open@5", "graph_task.open@5"));
  EXPECT_THAT(check_lines({begin + "0"}, false), ElementsAre("end.missing@2"))
      << "an open task is no second finding of a truncated trace";
}

TEST(StructureCheck, Matches_pops_with_the_last_push_of_the_thread) {
  const auto ft = [](const char* kind, int thread, int level) {
    return R"("t":1,"kind":"Grad","k":")" + std::string(kind) + R"(","th":)" +
           std::to_string(thread) + R"(,"level":)" + std::to_string(level);
  };
  EXPECT_THAT(check_lines({ft("ft.push", 0, 1), ft("ft.push", 1, 1), ft("ft.push", 0, 2),
                           ft("ft.pop", 0, 2), ft("ft.pop", 1, 1), ft("ft.pop", 0, 1)}),
              IsEmpty());
  EXPECT_THAT(check_lines({ft("ft.push", 0, 1), ft("ft.pop", 0, 2), ft("ft.pop", 1, 1)}),
              ElementsAre("transform.pop@3", "transform.pop@4"));
}

TEST(StructureCheck, Numbers_collectives_once_per_group_and_completes_them_after_issue) {
  const auto coll = [](const char* kind, const char* group, int number) {
    return R"("th":0,"t":1,"op":"all_reduce","k":")" + std::string(kind) + R"(","group":")" +
           group + R"(","cseq":)" + std::to_string(number);
  };
  EXPECT_THAT(check_lines({coll("coll.issue", "a", 0), coll("coll.issue", "b", 0),
                           coll("coll.issue", "a", 2), coll("coll.issue", "a", 1),
                           coll("coll.complete", "a", 1), coll("coll.complete", "a", 0)}),
              IsEmpty());
  EXPECT_THAT(check_lines({coll("coll.issue", "a", 5), coll("coll.issue", "a", 6),
                           coll("coll.issue", "a", 5), coll("coll.complete", "a", 4),
                           coll("coll.complete", "b", 5)}),
              ElementsAre("collective.number@4", "collective.complete@5", "collective.complete@6"));
}

// hooktrace 1.1: a send may have the number of a collective of its group.
TEST(StructureCheck, Numbers_send_and_recv_apart_from_collectives) {
  const auto issue = [](const char* op, int number) {
    return R"("th":0,"t":1,"k":"coll.issue","group":"a","op":")" + std::string(op) +
           R"(","cseq":)" + std::to_string(number);
  };
  EXPECT_THAT(check_lines({issue("all_reduce", 0), issue("send", 0), issue("recv", 1)}), IsEmpty());
  EXPECT_THAT(check_lines({issue("send", 0), issue("recv", 0)}),
              ElementsAre("collective.number@3"));
}

TEST(StructureCheck, Knows_declared_params_when_any_is_declared) {
  const std::string hook = R"("th":0,"t":1,"k":"param.post_acc","param":"w")";
  const auto declare = [](const char* name) {
    return R"({"rec":"param","id":0,"shape":[],"dtype":"float32","name":")" + std::string(name) +
           "\"}";
  };
  EXPECT_THAT(check_lines({hook}), IsEmpty());
  EXPECT_THAT(check_lines({declare("w"), hook}), IsEmpty());
  EXPECT_THAT(check_lines({declare("v"), hook}), ElementsAre("param.undeclared@3"));
}

TEST(StructureCheck, Compares_the_counts_of_the_end_record) {
  EXPECT_THAT(check_lines({R"({"rec":"end","events":3,"records":0})"}, false),
              ElementsAre("end.counts@2"));
}

TEST(StructureCheck, Keeps_a_bounded_number_of_findings_but_counts_all) {
  NameTable names;
  StructureCheck check(names);
  HookEvent end;
  end.kind = EventKind::gt_end;
  for (int call = 0; call < 500; ++call) {
    end.call = call;
    check.on_record({end, {}, 0});
  }
  EXPECT_EQ(check.findings().size(), StructureCheck::kMaxFindings);
  EXPECT_EQ(check.finding_count(), 500U);
}

}  // namespace
}  // namespace zeroproof
