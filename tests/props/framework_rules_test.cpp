// What DDP and FSDP2 do by right, in events: no rule may accuse it. Each has a twin that is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/props/trace_text.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> kinds(const TraceText& trace) {
  return kinds_of(diagnosis_of_texts({trace.text()}));
}

// Before its third backward a static graph rebuilds its buckets; the recording names the old
// ones, of which one holds everything.
TEST(DdpRules, Buckets_that_were_made_anew_are_not_judged_by_the_old_layout) {
  const auto kinds_with = [](std::string_view first_bucket) {
    TraceText trace(0, 1);
    trace.param("a").param("b").begin(1).accumulate(1, "b");
    trace.bucket(1, 0, first_bucket, true);
    trace.accumulate(1, "a").event("bucket.ready", 1, ",\"index\":1,\"bytes\":16");
    return kinds(trace.end(1));
  };
  EXPECT_THAT(kinds_with("\"a\",\"b\""), IsEmpty());
  EXPECT_THAT(kinds_with("\"b\""), IsEmpty());
}

// A parameter that two reentrant checkpoints share is ready twice.
TEST(DdpRules, A_gradient_after_its_bucket_is_judged_where_the_layout_is_known) {
  TraceText trace(0, 1);
  trace.param("a").param("b").begin(1).accumulate(1, "a").accumulate(1, "b");
  trace.bucket(1, 0, "\"a\",\"b\"", true).accumulate(1, "a").end(1);
  EXPECT_THAT(kinds(trace), ElementsAre("ddp.ready_twice"));
}

TEST(DdpRules, Backwards_that_lead_to_no_bucket_are_those_of_other_losses) {
  TraceText trace(0, 1);
  trace.param("a").begin(1).accumulate(1, "a").bucket(1, 0, "\"a\"", true).end(1);
  trace.event("opt.step", -1);
  trace.begin(2).end(2);                         // autograd.grad for a penalty
  trace.begin(3).accumulate(3, "other").end(3);  // a model beside it
  EXPECT_THAT(kinds(trace), IsEmpty());
}

TEST(Framework, A_wrapper_counts_more_than_the_version_of_an_imported_library) {
  TraceText trace(0, 1, R"("torch":"2.15","deepspeed":"0.19.8")");
  trace.record(R"({"rec":"wrapper","model":0,"kind":"ddp","class":"DistributedDataParallel",)"
               R"("understood":true,"group":"world","size":1})");
  trace.begin(1).accumulate(1, "a").bucket(1, 1, "\"a\"", true).end(1);
  EXPECT_THAT(kinds(trace), Contains("ddp.bucket_order"));
}

class Units : public TraceText {
 public:
  Units() : TraceText(0, 2) {}
  Units& unit(int task, std::string_view moment, std::string_view module, int engine = 0) {
    const std::string fields = fmt::format(
        ",\"method\":\"fsdp2.{}\",\"module\":\"{}\",\"engine\":{}", moment, module, engine);
    event("engine.call", task, fields);
    event("engine.return", task, fields);
    return *this;
  }
  Units& reduce_scatter(int task, int number, std::string_view group) {
    event("coll.issue", task,
          fmt::format(",\"op\":\"reduce_scatter_tensor\",\"cseq\":{},\"group\":\"{}\",\"key\":"
                      "\"{}:{}\",\"bytes\":16,\"async\":false",
                      number, group, group, number));
    event("coll.complete", task,
          fmt::format(",\"op\":\"reduce_scatter_tensor\",\"cseq\":{},\"group\":\"{}\",\"key\":"
                      "\"{}:{}\"",
                      number, group, group, number));
    return *this;
  }
};

TEST(Fsdp2Rules, Two_roots_of_one_loss_each_have_their_final_callback) {
  const auto kinds_with = [](std::string_view second, int engine) {
    Units units;
    units.begin(1);
    units.unit(1, "pre_backward", "l1").unit(1, "post_backward", "l1");
    units.unit(1, "final_callback", "model").unit(1, "final_callback", second, engine);
    units.end(1);
    return kinds(units);
  };
  EXPECT_THAT(kinds_with("model1.model", 1), IsEmpty());
  EXPECT_THAT(kinds_with("model", 0), ElementsAre("fsdp2.final_callback_twice"));
}

// A backward that lies in a nested task as a whole ends there by right.
TEST(Fsdp2Rules, A_final_callback_belongs_to_the_task_in_which_its_backward_began) {
  const auto kinds_with = [](bool has_later_unit) {
    Units units;
    units.begin(1);
    units.begin(2, ",\"parent\":1");
    units.unit(2, "pre_backward", "l2").unit(2, "post_backward", "l2");
    units.unit(2, "final_callback", "model");
    units.end(2);
    if (has_later_unit) units.unit(1, "pre_backward", "l1").unit(1, "post_backward", "l1");
    units.end(1);
    return kinds(units);
  };
  EXPECT_THAT(kinds_with(false), IsEmpty());
  EXPECT_THAT(kinds_with(true), ElementsAre("fsdp2.final_callback_in_nested_task"));
}

// set_manual_backward_finalization: what no backward reached is reduced after the task.
TEST(Fsdp2Rules, A_backward_that_is_finalised_by_hand_has_until_the_step) {
  const auto kinds_with = [](bool is_finalised) {
    Units units;
    units.begin(1);
    units.unit(1, "pre_backward", "l1").unit(1, "final_callback", "model");
    units.end(1);
    if (is_finalised) units.unit(-1, "post_backward", "l1");
    units.event("opt.step", -1, ",\"engine\":0");
    return kinds(units);
  };
  EXPECT_THAT(kinds_with(true), IsEmpty());
  EXPECT_THAT(kinds_with(false), ElementsAre("fsdp2.unit_not_resharded"));
}

TEST(Fsdp2Rules, A_unit_that_is_used_twice_is_unsharded_twice) {
  Units units;
  units.begin(1);
  for (int use = 0; use < 2; ++use) {
    units.unit(1, "pre_backward", "shared");
    units.event("zparam.gather_begin", 1, ",\"params\":[\"w\"]");
    const std::string post =
        ",\"method\":\"fsdp2.post_backward\",\"module\":\"shared\",\"engine\":0";
    units.event("engine.call", 1, post);
    units.event("zparam.partition", 1, ",\"params\":[\"w\"]").accumulate(1, "w");
    units.event("engine.return", 1, post);
  }
  units.unit(1, "final_callback", "model");
  units.end(1);
  EXPECT_THAT(kinds(units), IsEmpty());
}

// A model that is excluded from synchronisation while another one steps is no mistake.
TEST(Fsdp2Rules, A_step_needs_the_synchronisation_of_its_own_model) {
  const auto kinds_with = [](int unsynced, int stepping) {
    Units units;
    units.event("mark", -1, fmt::format(",\"label\":\"fsdp2.no_sync\",\"engine\":{}", unsynced));
    units.begin(1);
    units.unit(1, "pre_backward", "l1").unit(1, "post_backward", "l1");
    units.unit(1, "final_callback", "model");
    units.end(1);
    units.event("opt.step", -1, fmt::format(",\"engine\":{}", stepping));
    return kinds(units);
  };
  EXPECT_THAT(kinds_with(1, 0), IsEmpty());
  EXPECT_THAT(kinds_with(0, 0), ElementsAre("fsdp2.step_without_sync"));
}

// Several backwards without reduction, then finalize_backward().
TEST(Fsdp2Rules, A_step_may_follow_a_reduction_by_hand) {
  const auto kinds_with = [](bool is_finalised) {
    Units units;
    units.event("mark", -1, ",\"label\":\"fsdp2.no_sync\",\"engine\":0");
    units.begin(1);
    units.unit(1, "pre_backward", "l1").unit(1, "post_backward", "l1");
    units.unit(1, "final_callback", "model");
    units.end(1);
    if (is_finalised) units.unit(-1, "post_backward", "l1");
    units.event("opt.step", -1, ",\"engine\":0");
    return kinds(units);
  };
  EXPECT_THAT(kinds_with(true), IsEmpty());
  EXPECT_THAT(kinds_with(false), ElementsAre("fsdp2.step_without_sync"));
}

// Sequence parallelism reduce-scatters between the units, on a group of its own.
TEST(Fsdp2Rules, Reductions_on_other_groups_are_not_those_of_units) {
  const auto kinds_with = [](std::string_view group) {
    Units units;
    units.begin(1);
    units.unit(1, "pre_backward", "l1");
    const std::string post = ",\"method\":\"fsdp2.post_backward\",\"module\":\"l1\",\"engine\":0";
    units.event("engine.call", 1, post);
    units.reduce_scatter(1, 0, "dp");
    units.event("engine.return", 1, post);
    units.reduce_scatter(1, 1, group);
    units.unit(1, "final_callback", "model");
    units.end(1);
    return kinds(units);
  };
  EXPECT_THAT(kinds_with("tp"), IsEmpty());
  EXPECT_THAT(kinds_with("dp"), ElementsAre("fsdp2.reduction_outside_post_backward"));
}

// A frozen reference is another model, for which the recording has one word by shape.
TEST(Fsdp2Rules, Parameters_without_a_name_are_never_one_parameter) {
  Units units;
  units.begin(1);
  units.unit(1, "pre_backward", "l1");
  units.event("zparam.partition", 1, ",\"params\":[\"unnamed[4]\"]").accumulate(1, "unnamed[4]");
  units.unit(1, "post_backward", "l1").unit(1, "final_callback", "model");
  units.end(1);
  EXPECT_THAT(kinds(units), Not(Contains("fsdp2.use_after_reshard")));
}

}  // namespace
}  // namespace zeroproof
