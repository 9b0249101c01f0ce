// What replay says when it compares the files of several ranks: rules of operations and frameworks,
// swaps, messages, waits and replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/props/trace_text.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kDdp = R"("framework":"ddp")";

// A collective as a recorder of hooktrace 1.1 writes it.
struct Issue {
  std::string op = "all_reduce";
  int bytes = 16;
  std::string param = {};
  int root = -1;
  bool completes = true;
};

// One rank that issues these on the world, one after the other.
std::string rank_of(int rank, int world, const std::vector<Issue>& issues,
                    std::string_view end = "", std::string_view producer = R"("torch":"2.15")") {
  TraceText trace(rank, world, producer);
  std::string ranks = "0";
  for (int one = 1; one < world; ++one) ranks += fmt::format(",{}", one);
  trace.record(fmt::format(R"({{"rec":"group","name":"world","ranks":[{}]}})", ranks));
  for (const char* name : {"a", "b", "c", "d"}) trace.param(name);
  for (std::size_t at = 0; at < issues.size(); ++at) {
    const Issue& one = issues[at];
    std::string fields = fmt::format(R"(,"op":"{}","cseq":{},"group":"world")", one.op, at);
    std::string more = fmt::format(R"(,"bytes":{})", one.bytes);
    if (!one.param.empty()) more += fmt::format(R"(,"params":["{}"])", one.param);
    if (one.root >= 0) more += fmt::format(R"(,"root":{})", one.root);
    trace.event("coll.issue", -1, fields + more);
    if (one.completes) trace.event("coll.complete", -1, fields);
  }
  if (end == "error") trace.event("exc", -1, R"(,"type":"E","message":"Timed out")");
  return trace.text(end != "cut");
}

std::vector<std::string> kinds(const std::vector<Issue>& first, const std::vector<Issue>& second) {
  return kinds_of(diagnosis_of_texts({rank_of(0, 2, first), rank_of(1, 2, second)}));
}

// Operations whose sizes may differ between ranks, and those whose sizes must agree.
TEST(CollectiveRules, Compare_sizes_only_where_every_rank_passes_the_whole) {
  for (const char* op : {"all_to_all", "all_to_all_single", "scatter", "gather", "barrier"})
    EXPECT_THAT(kinds({{.op = op, .bytes = 16}}, {{.op = op, .bytes = 48}}), IsEmpty()) << op;
  for (const char* op : {"all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor",
                         "broadcast", "all_gather", "reduce"})
    EXPECT_THAT(kinds({{.op = op, .bytes = 16}}, {{.op = op, .bytes = 48}}),
                ElementsAre("collective.size_differs"))
        << op;
}

TEST(CollectiveRules, Compare_roots) {
  const Issue from_0 = {.op = "broadcast", .root = 0};
  const Issue from_1 = {.op = "broadcast", .root = 1};
  EXPECT_THAT(kinds({from_0}, {from_0}), IsEmpty());
  EXPECT_THAT(kinds({from_0}, {from_1}), ElementsAre("collective.root_differs"));
}

TEST(RankComparison, Tells_a_swap_from_an_omission) {
  const Issue a = {.bytes = 16, .param = "a"};
  const Issue b = {.bytes = 32, .param = "b"};
  const Issue c = {.bytes = 64, .param = "c"};
  const Issue d = {.bytes = 80, .param = "d"};
  const auto swap = diagnosis_of_texts({rank_of(0, 2, {a, b, c, d}), rank_of(1, 2, {a, c, b, d})});
  ASSERT_THAT(kinds_of(swap), ElementsAre("collective.order_differs"));
  EXPECT_THAT(swap[0].what, HasSubstr("the same 2 collectives of group world in another order"));
  EXPECT_THAT(kinds({a, b, c, d}, {a, c, d}), ElementsAre("collective.missing"));
  // The end of a hang: both have issued the two that they swapped.
  EXPECT_THAT(kinds({a, b, c}, {a, c, b}), ElementsAre("collective.order_differs"));
}

TEST(RankComparison, Names_the_first_unit_that_ranks_gather_differently) {
  const auto unit = [](const char* param) {
    return Issue{.op = "all_gather_into_tensor", .bytes = 64, .param = param};
  };
  const auto all = diagnosis_of_texts(
      {rank_of(0, 2, {unit("a"), unit("b"), unit("c"), unit("d"), unit("a"), unit("b")}),
       rank_of(1, 2, {unit("a"), unit("c"), unit("d"), unit("a"), unit("b"), unit("c")})});
  ASSERT_THAT(kinds_of(all), Contains("collective.missing"));
  EXPECT_EQ("b", all[0].parameter);
  EXPECT_THAT(all[0].ranks, ElementsAre(1));
}

// The gather of an FSDP2 unit does not name its parameters; the event before it does.
TEST(RankComparison, Takes_the_parameters_of_a_gather_from_the_event_before_it) {
  const auto job = [](int rank, std::vector<const char*> units) {
    TraceText trace(rank, 2, R"("framework":"fsdp2")");
    trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
    for (const char* name : {"a", "b", "c"}) trace.param(name);
    int number = 0;
    for (const char* unit : units) {
      trace.event("zparam.gather_begin", -1, fmt::format(R"(,"params":["{}"])", unit));
      const std::string key =
          fmt::format(R"(,"op":"all_gather_into_tensor","cseq":{},"group":"world")", number++);
      trace.event("coll.issue", -1, key + R"(,"bytes":64)").event("coll.complete", -1, key);
    }
    return trace.text();
  };
  EXPECT_THAT(diagnosis_of_texts({job(0, {"a", "b", "c"}), job(1, {"a", "b", "c"})}), IsEmpty());
  const auto all = diagnosis_of_texts({job(0, {"a", "b", "c"}), job(1, {"a", "c", "b"})});
  ASSERT_THAT(kinds_of(all), Contains("collective.order_differs"));
  EXPECT_EQ("c", all[0].parameter);
}

// Stages of a pipeline hold different models: their names cannot be compared.
TEST(RankComparison, Compares_parameters_only_between_ranks_that_declare_the_same) {
  const auto job = [](int rank, std::string_view name) {
    TraceText trace(rank, 2);
    trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
    return trace.param(name).collective(0, "all_reduce", 16, name).text();
  };
  EXPECT_THAT(diagnosis_of_texts({job(0, "embedding"), job(1, "head")}), IsEmpty());
}

// A17: the recorder did not see the end of a work that Python dropped.
TEST(RankComparison, Does_not_wait_for_what_another_rank_has_seen_complete) {
  const Issue open = {.completes = false};
  const auto all = diagnosis_of_texts(
      {rank_of(0, 2, {{}, open}, "error"), rank_of(1, 2, {{}, {}, {.bytes = 32}}, "error")});
  for (const Diagnosis& one : all)
    for (const DiagnosisWait& wait : one.waits)
      EXPECT_THAT(wait.text, Not(HasSubstr("number 1 "))) << wait.text;
}

// gloo: the work of a collective that failed says that it is complete.
TEST(RankComparison, Does_not_take_a_failed_work_for_a_finished_one) {
  const auto all =
      diagnosis_of_texts({rank_of(0, 2, {{}, {.bytes = 32}}, "error"), rank_of(1, 2, {{}})});
  ASSERT_THAT(kinds_of(all), Contains("collective.missing"));
  EXPECT_THAT(all[0].ranks, ElementsAre(1));
}

TEST(RankComparison, Takes_a_recording_that_ends_later_for_no_mistake) {
  EXPECT_THAT(kinds({{}, {}, {}}, {{}, {}}), IsEmpty());
  EXPECT_THAT(kinds({{}, {}, {.completes = false}}, {{}, {}}), IsEmpty()) << "both ended well";
}

TEST(RankComparison, Tells_one_cause_and_the_ranks_that_wait_as_a_set) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 6; ++rank)
    texts.push_back(rank == 2
                        ? rank_of(rank, 6, {{}, {}}, "error")
                        : rank_of(rank, 6, {{}, {}, {.bytes = 32, .completes = false}}, "cut"));
  const auto all = diagnosis_of_texts(texts);
  ASSERT_THAT(kinds_of(all), Contains("collective.missing"));
  EXPECT_THAT(all[0].what, HasSubstr("rank 2 never issued the all_reduce of 32 bytes"));
  EXPECT_THAT(all[0].what, HasSubstr("that ranks 0, 1, 3–5 issued as number 2"));
  ASSERT_EQ(1U, all[0].waits.size());
  EXPECT_THAT(all[0].waits[0].ranks, ElementsAre(0, 1, 3, 4, 5));
  EXPECT_THAT(all[0].waits[0].for_ranks, ElementsAre(2));
}

// Messages: each rank sends or receives as many bytes as its list says; negative: receives.
std::string messenger(int rank, const std::vector<int>& messages, bool has_peer = true,
                      bool is_killed = false) {
  TraceText trace(rank, 2);
  trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
  for (std::size_t at = 0; at < messages.size(); ++at) {
    const bool is_last = at + 1 == messages.size();
    const std::string fields = fmt::format(R"(,"op":"{}","cseq":{},"group":"world")",
                                           messages[at] < 0 ? "recv" : "send", at);
    trace.event("coll.issue", -1,
                fields + fmt::format(R"(,"bytes":{}{})", std::abs(messages[at]),
                                     has_peer ? fmt::format(R"(,"peer":{})", 1 - rank) : ""));
    if (!is_killed || !is_last) trace.event("coll.complete", -1, fields);
  }
  return trace.text(!is_killed);
}

TEST(Messages, Of_a_pipeline_pair_in_their_order) {
  EXPECT_THAT(diagnosis_of_texts({messenger(0, {16, 32, -8}), messenger(1, {-16, -32, 8})}),
              IsEmpty());
  EXPECT_THAT(diagnosis_of_texts({messenger(0, {16, -8, 32}), messenger(1, {8, -16, -32})}),
              IsEmpty());
}

TEST(Messages, Of_different_sizes_do_not_fit) {
  const auto all = diagnosis_of_texts({messenger(0, {16, 32}), messenger(1, {-16, -24})});
  ASSERT_THAT(kinds_of(all), ElementsAre("message.size_differs"));
  EXPECT_THAT(all[0].what, HasSubstr("message 2 from rank 0 to rank 1"));
}

TEST(Messages, Are_not_judged_where_the_file_names_no_peer) {
  EXPECT_THAT(diagnosis_of_texts({messenger(0, {16, 32}, false), messenger(1, {-16, -24}, false)}),
              IsEmpty());
}

TEST(Messages, That_never_come_are_waited_for) {
  const auto all = diagnosis_of_texts({messenger(0, {16}), messenger(1, {-16, -32}, true, true)});
  ASSERT_THAT(kinds_of(all), Contains("message.missing"));
  EXPECT_THAT(all[0].ranks, ElementsAre(0));
  EXPECT_THAT(all[0].what, HasSubstr("rank 0 never issued the send of message 2 to rank 1"));
}

// One rank of a DDP job whose wrapper ignores `expert`: parameters with whether they are trained,
// and steps after each reduction.
std::string replica(int rank, const std::vector<std::pair<const char*, bool>>& params,
                    const std::vector<bool>& steps) {
  TraceText trace(rank, 2, kDdp);
  trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
  trace.record(R"({"rec":"wrapper","model":0,"kind":"ddp","class":"Net","understood":true,)"
               R"("group":"world","size":2,"ignored":["expert"]})");
  for (const auto& [name, is_trained] : params)
    trace.record(fmt::format(
        R"({{"rec":"param","id":0,"name":"{}","shape":[4],"dtype":"float32","requires_grad":{}}})",
        name, is_trained));
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const std::string key = fmt::format(R"(,"op":"all_reduce","cseq":{},"group":"world")", at);
    trace.accumulate(-1, "a");
    trace.event("coll.issue", -1, key + R"(,"bytes":64)").event("coll.complete", -1, key);
    if (steps[at]) trace.event("opt.step", -1);
  }
  return trace.text();
}

TEST(Replicas, Hold_the_same_parameters_and_train_the_same) {
  const auto kinds_with = [](const std::vector<std::pair<const char*, bool>>& other) {
    return diagnosis_of_texts(
        {replica(0, {{"a", true}, {"b", true}}, {true}), replica(1, other, {true})});
  };
  EXPECT_THAT(kinds_of(kinds_with({{"a", true}, {"b", true}})), IsEmpty());
  const auto frozen = kinds_with({{"a", true}, {"b", false}});
  ASSERT_THAT(kinds_of(frozen), Contains("ranks.parameters_differ"));
  EXPECT_THAT(frozen[0].what, HasSubstr("on rank 1 b frozen"));
  const auto added = kinds_with({{"a", true}, {"b", true}, {"adapter", true}});
  ASSERT_THAT(kinds_of(added), Contains("ranks.parameters_differ"));
  EXPECT_THAT(added[0].what, HasSubstr("adapter in addition"));
  EXPECT_EQ("adapter", added[0].parameter);
  EXPECT_THAT(kinds_of(kinds_with({{"a", true}, {"expert", true}, {"b", true}})), IsEmpty())
      << "the wrapper ignores it";
  const auto order = kinds_with({{"b", true}, {"a", true}});
  ASSERT_THAT(kinds_of(order), Contains("ranks.parameters_differ"));
}

TEST(Replicas, Take_the_same_steps) {
  const auto job = [](int rank, const std::vector<bool>& steps) {
    return replica(rank, {{"a", true}}, steps);
  };
  EXPECT_THAT(diagnosis_of_texts({job(0, {true, true}), job(1, {true, true})}), IsEmpty());
  const auto all = diagnosis_of_texts({job(0, {true, true, true}), job(1, {true, false, true})});
  ASSERT_THAT(kinds_of(all), Contains("ranks.steps_differ"));
  const auto& found = *std::find_if(all.begin(), all.end(), [](const Diagnosis& one) {
    return one.kind == "ranks.steps_differ";
  });
  EXPECT_THAT(found.what, HasSubstr("rank 1 took 2 optimizer steps, rank 0 3"));
  EXPECT_THAT(found.what, HasSubstr("they part after step 1"));
}

// DDP's join: a rank without data runs no backward, takes no step and reduces zeros.
TEST(Replicas, With_fewer_backwards_take_fewer_steps) {
  const auto job = [](int rank, int backwards) {
    TraceText trace(rank, 2, kDdp);
    trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})").param("a");
    for (int at = 0; at < 3; ++at) {
      if (at < backwards) trace.accumulate(-1, "a");
      trace.collective(at, "all_reduce", 16, "a");
      if (at < backwards) trace.event("opt.step", -1);
    }
    return trace.text();
  };
  EXPECT_THAT(kinds_of(diagnosis_of_texts({job(0, 3), job(1, 2)})),
              Not(Contains("ranks.steps_differ")));
}

// The order of hooks is a rule of ZeRO 1 and 2 alone.
TEST(Replicas, Compare_the_order_of_hooks_only_where_it_decides_what_is_reduced) {
  const auto job = [](int rank, std::string_view producer, std::string_view more,
                      std::string_view first, std::string_view second) {
    TraceText trace(rank, 2, producer, more);
    trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})").param("a").param("b");
    trace.begin(1).accumulate(1, first).accumulate(1, second).end(1);
    return trace.collective(0, "all_reduce", 32, "both").text();
  };
  struct Case {
    const char* producer;
    const char* more;
    bool is_rule;
  };
  for (const Case& one :
       {Case{R"("framework":"ddp")", "", false}, Case{R"("framework":"fsdp2")", "", false},
        Case{R"("torch":"2.15")", "", false},
        Case{R"("deepspeed":"0.19.8")", R"(,"stage":0)", false},
        Case{R"("deepspeed":"0.19.8")", R"(,"stage":1)", true},
        Case{R"("deepspeed":"0.19.8")", R"(,"stage":2)", true},
        Case{R"("deepspeed":"0.19.8")", R"(,"stage":3)", false}}) {
    const auto all = kinds_of(diagnosis_of_texts(
        {job(0, one.producer, one.more, "a", "b"), job(1, one.producer, one.more, "b", "a")}));
    EXPECT_EQ(one.is_rule, std::find(all.begin(), all.end(), "hooks.order_differs") != all.end())
        << one.producer << one.more;
  }
}

TEST(LostKinds, Switch_the_comparison_off_with_the_reason) {
  const auto job = [](int rank, int bytes, bool has_note) {
    TraceText trace(rank, 2);
    trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
    if (has_note)
      trace.record(
          R"({"rec":"note","text":"the observer of collectives failed","lost":["coll.*"]})");
    return trace.collective(0, "all_reduce", bytes, "a").text();
  };
  EXPECT_THAT(diagnosis_of_texts({job(0, 16, false), job(1, 32, true)}), IsEmpty());
  const ReplayReport report = replayed({job(0, 16, false), job(1, 32, true)});
  ASSERT_EQ(1U, report.runs.size());
  EXPECT_THAT(report.runs[0].skipped,
              Contains(HasSubstr("rank 1: not observed: the observer of collectives failed")));
}

}  // namespace
}  // namespace zeroproof
