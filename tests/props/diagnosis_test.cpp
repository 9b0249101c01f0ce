// The diagnoses of replay: by the events alone, without names of programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/props/trace_text.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string recorded(const std::string& name) {
  return ZP_SOURCE_DIR "/tests/traces/deepspeed-edaa7221-cuda/" + name + ".jsonl.gz";
}

// A job of three parameters that reduces each by hand; `skips` leaves one out in one step.
std::string reducing_job(int rank, int world, int steps, int skipped_step, int skipped_param,
                         bool is_complete = true) {
  TraceText trace(rank, world);
  trace.record(R"({"rec":"group","name":"world","ranks":[)" + [&] {
    std::string ranks;
    for (int one = 0; one < world; ++one) ranks += (one == 0 ? "" : ",") + std::to_string(one);
    return ranks;
  }() + "]}");
  int number = 0;
  for (int param = 0; param < 3; ++param) trace.param("l" + std::to_string(param));
  for (int step = 0; step < steps; ++step)
    for (int param = 0; param < 3; ++param)
      if (step != skipped_step || param != skipped_param)
        trace.collective(number++, "all_reduce", 16, "l" + std::to_string(param));
  return trace.text(is_complete);
}

TEST(Diagnosis, Agreeing_ranks_have_none) {
  EXPECT_THAT(diagnosis_of_texts({reducing_job(0, 2, 3, -1, -1), reducing_job(1, 2, 3, -1, -1)}),
              IsEmpty());
}

TEST(Diagnosis, Names_the_rank_parameter_and_last_common_event_of_a_skipped_collective) {
  const auto all = diagnosis_of_texts({reducing_job(0, 2, 3, -1, -1), reducing_job(1, 2, 3, 1, 2)});
  ASSERT_THAT(kinds_of(all), Contains("collective.missing"));
  const Diagnosis& found = all.front();
  EXPECT_EQ("collective.missing", found.kind);
  EXPECT_THAT(found.ranks, ElementsAre(1));
  EXPECT_EQ("l2", found.parameter);
  EXPECT_EQ("all_reduce number 5 of group world", found.collective);
  ASSERT_TRUE(found.last_common.has_value());
  EXPECT_THAT(found.last_common->text, HasSubstr("for l1, number 4 of group world"));
  EXPECT_THAT(found.what, HasSubstr("rank 1 left out the all_reduce of 16 bytes for l2"));
}

// A rank that leaves out any collective, in a world of any size, is found and named.
RC_GTEST_PROP(Diagnosis, Finds_whoever_skips_whatever, ()) {
  const int world = *rc::gen::inRange(2, 5);
  const int steps = *rc::gen::inRange(2, 5);
  const int odd = *rc::gen::inRange(0, world);
  const int step = *rc::gen::inRange(0, steps - 1);  // something follows
  const int param = *rc::gen::inRange(0, 3);
  std::vector<std::string> texts;
  for (int rank = 0; rank < world; ++rank)
    texts.push_back(reducing_job(rank, world, steps, rank == odd ? step : -1, param));
  const auto all = diagnosis_of_texts(texts);
  RC_ASSERT(!all.empty());
  RC_ASSERT(all.front().kind == "collective.missing");
  RC_ASSERT(all.front().parameter == "l" + std::to_string(param));
  RC_ASSERT(all.front().ranks == std::vector<std::int32_t>{odd});
}

TEST(Diagnosis, Says_who_waits_for_whom) {
  TraceText waiting(0, 2);
  waiting.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
  waiting.collective(0, "all_reduce", 16, "a").collective(1, "all_reduce", 32, "b", false);
  waiting.event("exc", -1, ",\"type\":\"RuntimeError\",\"message\":\"Timed out\"");
  TraceText gone(1, 2);
  gone.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
  gone.collective(0, "all_reduce", 16, "a").event("opt.step", -1);
  const auto all = diagnosis_of_texts({waiting.text(), gone.text()});
  ASSERT_FALSE(all.empty());
  ASSERT_EQ(1U, all.front().waits.size());
  EXPECT_EQ(0, all.front().waits[0].rank);
  EXPECT_THAT(all.front().waits[0].for_ranks, ElementsAre(1));
  EXPECT_EQ("b", all.front().parameter);
  EXPECT_THAT(all.front().what, HasSubstr("rank 1 never issued"));
}

// Its size is that of the only bias with one element, and it is a loss.
TEST(Diagnosis, Gives_no_parameter_to_a_collective_of_one_number) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 2; ++rank) {
    TraceText trace(rank, 2);
    trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
    trace.param("weight", 8).param("bias", 1);
    for (int number = 0; number < 2; ++number) {
      const int bytes = number == 1 && rank == 0 ? 4 : 32;
      trace.event("coll.issue", -1,
                  fmt::format(",\"op\":\"all_reduce\",\"cseq\":{0},\"group\":\"world\",\"key\":"
                              "\"world:{0}\",\"bytes\":{1},\"async\":false",
                              number, bytes));
    }
    texts.push_back(trace.text());
  }
  const auto all = diagnosis_of_texts(texts);
  ASSERT_FALSE(all.empty());
  EXPECT_THAT(all.front().what, HasSubstr("of 32 bytes for weight"));
  EXPECT_THAT(all.front().what, HasSubstr("of 4 bytes on rank 0"));
}

TEST(Diagnosis, Tells_size_from_operation_from_parameter) {
  const auto kind_with = [](std::string_view op, int bytes, std::string_view param) {
    std::vector<std::string> texts;
    for (int rank = 0; rank < 2; ++rank) {
      TraceText trace(rank, 2);
      trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
      trace.collective(0, "all_reduce", 16, "a");
      if (rank == 0)
        trace.collective(1, "all_reduce", 16, "b");
      else
        trace.collective(1, op, bytes, param);
      texts.push_back(trace.text());
    }
    return kinds_of(diagnosis_of_texts(texts));
  };
  EXPECT_THAT(kind_with("all_reduce", 16, "b"), IsEmpty());
  EXPECT_THAT(kind_with("all_reduce", 20, "b"), Contains("collective.size_differs"));
  EXPECT_THAT(kind_with("broadcast", 16, "b"), Contains("collective.operation_differs"));
  EXPECT_THAT(kind_with("all_reduce", 16, "c"), Contains("collective.parameter_differs"));
}

TEST(Diagnosis, Of_a_file_that_ends_early_names_what_the_rank_did_last) {
  const auto all =
      diagnosis_of_texts({reducing_job(0, 2, 2, -1, -1), reducing_job(1, 2, 1, -1, -1, false)});
  ASSERT_THAT(kinds_of(all), Contains("process.ended_early"));
  const auto& died = *std::find_if(all.begin(), all.end(), [](const Diagnosis& one) {
    return one.kind == "process.ended_early";
  });
  EXPECT_THAT(died.ranks, ElementsAre(1));
  ASSERT_FALSE(died.order.empty());
  EXPECT_THAT(died.order.back().text, HasSubstr("all_reduce number 2"));
}

TEST(Diagnosis, Of_a_process_that_died_inside_a_transform) {
  TraceText trace(0, 1, "\"deepspeed\":\"0.18.9\"", ",\"stage\":3");
  trace.event("ft.push", -1, ",\"level\":1,\"kind\":\"Grad\",\"ft\":[[1,\"Grad\"]]");
  EXPECT_THAT(kinds_of(diagnosis_of_texts({trace.text(false)})),
              ElementsAre("process.died_in_transform"));
}

TEST(Diagnosis, Of_a_collective_that_one_rank_of_three_has_in_excess) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 3; ++rank) {
    TraceText trace(rank, 3);
    trace.record(R"({"rec":"group","name":"world","ranks":[0,1,2]})");
    int number = 0;
    trace.collective(number++, "all_reduce", 16, "a");
    if (rank == 2) trace.collective(number++, "broadcast", 8, "log");
    trace.collective(number++, "all_reduce", 32, "b");
    trace.collective(number, "all_reduce", 16, "c");
    texts.push_back(trace.text());
  }
  const auto all = diagnosis_of_texts(texts);
  ASSERT_THAT(kinds_of(all), Contains("collective.extra"));
  EXPECT_THAT(all.front().ranks, ElementsAre(2));
  EXPECT_EQ("log", all.front().parameter);
}

TEST(Diagnosis, Of_gradients_that_form_in_another_order) {
  const auto job = [](int rank, std::string_view first, std::string_view second) {
    TraceText trace(rank, 2, "\"deepspeed\":\"0.18.9\"", ",\"stage\":2");
    trace.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
    trace.begin(1).accumulate(1, first).accumulate(1, second).end(1);
    return trace.collective(0, "all_reduce", 16, "both").text();
  };
  EXPECT_THAT(diagnosis_of_texts({job(0, "a", "b"), job(1, "a", "b")}), IsEmpty());
  const auto all = diagnosis_of_texts({job(0, "a", "b"), job(1, "b", "a")});
  ASSERT_THAT(kinds_of(all), ElementsAre("hooks.order_differs"));
  EXPECT_EQ(Gravity::hazard, all[0].gravity);
  EXPECT_EQ("b", all[0].parameter);
}

TEST(Diagnosis, Of_a_rank_that_left_no_file) {
  const auto all =
      diagnosis_of_texts({reducing_job(0, 3, 2, -1, -1), reducing_job(2, 3, 2, -1, -1)});
  ASSERT_THAT(kinds_of(all), ElementsAre("rank.no_file"));
  EXPECT_THAT(all[0].ranks, ElementsAre(1));
}

// As recorders write it whose own hook runs after DeepSpeed's.
TEST(Diagnosis, Of_an_undefined_gradient_that_only_the_exception_tells) {
  const auto kinds = [](std::string_view message) {
    TraceText trace(0, 1, "\"deepspeed\":\"0.18.9\"", ",\"stage\":2");
    trace.begin(1).event("engine.call", 1, ",\"method\":\"grad_hook\",\"param\":\"w\"");
    trace.event("engine.return", 1,
                ",\"method\":\"grad_hook\",\"param\":\"w\",\"exc\":\"AttributeError\"");
    trace.end(1, ",\"exc\":\"AttributeError\"");
    trace.event("exc", -1, fmt::format(",\"type\":\"AttributeError\",\"message\":\"{}\"", message));
    return kinds_of(diagnosis_of_texts({trace.text()}));
  };
  EXPECT_THAT(kinds("'NoneType' object has no attribute 'view'"),
              Contains("hook.undefined_gradient"));
  EXPECT_THAT(kinds("out of memory"), Not(Contains("hook.undefined_gradient")));
}

TEST(Diagnosis, Of_ddp_buckets_out_of_order) {
  const auto kinds = [](std::vector<int> order) {
    TraceText trace(0, 1);
    trace.begin(1).accumulate(1, "a").accumulate(1, "b");
    for (std::size_t at = 0; at < order.size(); ++at)
      trace.bucket(1, order[at], order[at] == 0 ? "\"a\"" : "\"b\"", at + 1 == order.size());
    trace.end(1);
    return kinds_of(diagnosis_of_texts({trace.text()}));
  };
  EXPECT_THAT(kinds({0, 1}), IsEmpty());
  EXPECT_THAT(kinds({1, 0}), Contains("ddp.bucket_order"));
  EXPECT_THAT(kinds({0, 0}), Contains("ddp.bucket_twice"));
}

TEST(Diagnosis, Of_a_ddp_gradient_that_comes_after_its_bucket) {
  TraceText trace(0, 1);
  trace.param("a")
      .begin(1)
      .accumulate(1, "a")
      .bucket(1, 0, "\"a\"", true)
      .accumulate(1, "a")
      .end(1);
  const auto all = diagnosis_of_texts({trace.text()});
  ASSERT_THAT(kinds_of(all), ElementsAre("ddp.ready_twice"));
  EXPECT_EQ("a", all[0].parameter);
}

TEST(Diagnosis, Of_ddp_buckets_that_never_fill) {
  TraceText trace(0, 1);
  trace.param("a").param("unused").begin(1).accumulate(1, "a").bucket(1, 0, "\"a\"", false).end(1);
  const auto all = diagnosis_of_texts({trace.text()});
  ASSERT_THAT(kinds_of(all), ElementsAre("ddp.buckets_incomplete"));
  EXPECT_EQ("unused", all[0].parameter);
}

TEST(Diagnosis, Of_a_ddp_step_on_gradients_that_were_never_reduced) {
  const auto kinds = [](bool is_boundary_synced) {
    TraceText trace(0, 1);
    trace.event("mark", -1, ",\"label\":\"ddp.no_sync\"").begin(1).accumulate(1, "a").end(1);
    if (is_boundary_synced) trace.begin(2).accumulate(2, "a").bucket(2, 0, "\"a\"", true).end(2);
    trace.event("opt.step", -1);
    return kinds_of(diagnosis_of_texts({trace.text()}));
  };
  EXPECT_THAT(kinds(true), IsEmpty());
  EXPECT_THAT(kinds(false), ElementsAre("ddp.step_without_sync"));
}

// One backward of two FSDP2 units; the parts that are left out break a promise each.
std::vector<std::string> fsdp2_kinds(bool has_final, bool has_post, int final_task) {
  const auto unit = [](std::string_view method, std::string_view module) {
    return fmt::format(",\"method\":\"fsdp2.{}\",\"module\":\"{}\"", method, module);
  };
  TraceText trace(0, 1);
  trace.param("a").begin(1);
  trace.event("engine.call", 1, unit("pre_backward", "l1"));
  trace.event("zparam.gather_begin", 1, ",\"params\":[\"a\"]");
  trace.event("engine.return", 1, unit("pre_backward", "l1"));
  if (final_task != 1) trace.begin(final_task, ",\"parent\":1");
  if (has_post) {
    trace.event("engine.call", 1, unit("post_backward", "l1"));
    trace.event("zparam.partition", 1, ",\"params\":[\"a\"]").accumulate(1, "a");
    trace.event("engine.return", 1, unit("post_backward", "l1"));
  }
  if (has_final) {
    trace.event("engine.call", final_task, unit("final_callback", "root"));
    trace.event("engine.return", final_task, unit("final_callback", "root"));
  }
  if (final_task != 1) trace.end(final_task);
  trace.end(1);
  return kinds_of(diagnosis_of_texts({trace.text()}));
}

TEST(Diagnosis, Of_what_fsdp2_promises) {
  EXPECT_THAT(fsdp2_kinds(true, true, 1), IsEmpty());
  EXPECT_THAT(fsdp2_kinds(false, true, 1), ElementsAre("fsdp2.no_final_callback"));
  EXPECT_THAT(fsdp2_kinds(true, false, 1), ElementsAre("fsdp2.unit_not_resharded"));
  EXPECT_THAT(fsdp2_kinds(true, true, 2), Contains("fsdp2.final_callback_in_nested_task"));
}

TEST(Diagnosis, Of_an_fsdp2_gradient_outside_its_unit) {
  TraceText trace(0, 1);
  trace.begin(1).event("engine.call", 1, ",\"method\":\"fsdp2.pre_backward\",\"module\":\"l1\"");
  trace.event("zparam.partition", 1, ",\"params\":[\"a\"]")
      .accumulate(1, "a")
      .end(1, ",\"exc\":\"E\"");
  EXPECT_THAT(kinds_of(diagnosis_of_texts({trace.text()})), ElementsAre("fsdp2.use_after_reshard"));
}

TEST(Diagnosis, Of_callbacks_that_autograd_drops) {
  const auto kinds = [](bool runs, bool fails) {
    TraceText trace(0, 1);
    trace.begin(1).event("cb.queue", 1, ",\"label\":\"mine\"");
    if (runs)
      trace.event("cb.begin", 1, ",\"label\":\"mine\"").event("cb.end", 1, ",\"label\":\"mine\"");
    trace.end(1, fails ? ",\"exc\":\"ValueError\"" : "");
    return kinds_of(diagnosis_of_texts({trace.text()}));
  };
  EXPECT_THAT(kinds(true, false), IsEmpty());
  EXPECT_THAT(kinds(false, true), ElementsAre("callback.dropped"));
  EXPECT_THAT(kinds(false, false), ElementsAre("callback.missing"));
}

// docs/spec/autograd.md 22, from recordings alone.
struct Upstream {
  const char* trace;
  const char* kind;
};

class UpstreamFinding : public ::testing::TestWithParam<Upstream> {};

TEST_P(UpstreamFinding, Is_named_by_its_events) {
  const auto all = diagnosis_of({recorded(GetParam().trace)});
  ASSERT_THAT(kinds_of(all), Contains(GetParam().kind));
  for (const Diagnosis& one : all) {
    EXPECT_FALSE(one.what.empty());
    EXPECT_FALSE(one.rule.empty());
    EXPECT_FALSE(one.look_at.empty());
    EXPECT_FALSE(one.order.empty()) << one.kind;
    EXPECT_TRUE(std::any_of(one.order.begin(), one.order.end(), [](const DiagnosisMoment& moment) {
      return moment.is_bad;
    })) << one.kind;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Section22, UpstreamFinding,
    ::testing::Values(Upstream{"two_losses_retain__z1_fp32_w1_r0", "gradients.overwritten"},
                      Upstream{"two_losses_retain__z3_fp32_w1_r0", "zero3.retained_graph_released"},
                      Upstream{"undefined_grad__z2_fp32_w2_r0", "hook.undefined_gradient"},
                      Upstream{"undefined_grad__z3_fp32_w2_r0", "hook.undefined_gradient"},
                      Upstream{"exception_recovery__z1_fp32_w1_r0", "backward.never_left"},
                      Upstream{"exception_recovery__z2_fp32_w1_r0", "backward.dirty_after_abort"},
                      Upstream{"exception_recovery__z3_fp32_w1_r0", "backward.dirty_after_abort"},
                      Upstream{"func_vmap_grad__z3_fp32_w1_r0", "zero3.transform_unsupported"},
                      Upstream{"manual_backward__z0_fp32_w1_r0", "refused_by_design"},
                      Upstream{"mlp__z0_bf16_w1_r0", "optimizer.step_count_ahead"}));

}  // namespace
}  // namespace zeroproof
