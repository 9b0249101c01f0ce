// What a step uses: reduced gradients, the parameters that are trained, gradients of its own
// window; and how a process ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/props/job_text.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(StepRules, A_reduced_step_is_right) {
  Job job = ddp_job();
  for (int step = 0; step < 3; ++step) job.forward("ddp").backward(true).step().zero_grad();
  EXPECT_THAT(diagnosis(job), IsEmpty());
}

// Each row leaves the gradients of one rank unreduced, and names why.
TEST(StepRules, Name_why_no_collective_carried_the_gradients_of_a_step) {
  struct Row {
    const char* cause;
    void (*window)(Job&);
  };
  const std::vector<Row> rows = {
      {"past DistributedDataParallel",
       [](Job& job) { job.forward("a").backward(false).step().zero_grad(); }},
      {"hooks of DistributedDataParallel did not run",
       [](Job& job) { job.forward("ddp").forward("a").backward(false).step().zero_grad(); }},
      {"two backwards ran over one forward",
       [](Job& job) { job.forward("ddp").backward(true).backward(false).step().zero_grad(); }},
      {"made trainable after",
       [](Job& job) {
         job.mark("requires_grad:true", ",\"param\":\"a.weight\"");
         job.forward("ddp").backward(true, R"("b.bias","b.weight")").step().zero_grad();
       }},
  };
  for (const Row& row : rows) {
    Job job = ddp_job();
    for (int step = 0; step < 2; ++step) row.window(job);
    const auto all = diagnosis(job);
    ASSERT_THAT(kinds_of(all), ElementsAre("ddp.step_without_reduction")) << row.cause;
    EXPECT_THAT(all[0].what, HasSubstr(row.cause));
    EXPECT_EQ(Gravity::defect, all[0].gravity);
    EXPECT_TRUE(all[0].order.back().is_bad);
  }
}

// A frozen reference that is met first has number 0 and the prefix; the policy has bare names.
TEST(StepRules, The_wrapper_of_bare_names_is_that_of_the_model_without_a_prefix) {
  Job job;
  job.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
  job.record(R"({"rec":"param","id":9,"name":"model0.a.weight","shape":[4,4],"dtype":"float32",)"
             R"("requires_grad":false})");
  job.model();
  job.record(R"({"rec":"wrapper","model":1,"kind":"ddp","class":"DistributedDataParallel",)"
             R"("understood":true,"group":"world","size":2})");
  job.optimizer(kAll);
  for (int step = 0; step < 2; ++step) job.forward("ddp1").backward(false).step().zero_grad();
  const auto all = diagnosis(job);
  ASSERT_THAT(kinds_of(all), ElementsAre("ddp.step_without_reduction"));
  EXPECT_THAT(all[0].what, HasSubstr("hooks of DistributedDataParallel did not run"));
}

// A wrapper around a part of the model: the rest is in no bucket from the beginning.
TEST(StepRules, Parameters_beside_a_wrapped_part_are_not_those_of_DDP) {
  Job job = ddp_job();
  for (int step = 0; step < 2; ++step)
    job.forward("ddp").backward(true, R"("b.bias","b.weight")").step().zero_grad();
  EXPECT_THAT(diagnosis(job), IsEmpty());
}

TEST(StepRules, A_communication_hook_that_reduces_nothing_is_named) {
  const auto job_with = [](bool has_collective) {
    Job job;
    job.model().ddp(",\"comm_hook\":\"noop_hook\"").optimizer(kAll);
    for (int step = 0; step < 2; ++step) {
      job.forward("ddp").backward(false);
      if (has_collective) job.all_reduce(8);  // PowerSGD sends little
      job.step().zero_grad();
    }
    return job;
  };
  EXPECT_THAT(diagnosis(job_with(true)), IsEmpty());
  const auto all = diagnosis(job_with(false));
  ASSERT_THAT(kinds_of(all), ElementsAre("ddp.step_without_reduction"));
  EXPECT_THAT(all[0].what, HasSubstr("noop_hook"));
}

// A user's own reduction carries the gradients if it carries enough; a logged loss does not.
TEST(StepRules, Reductions_by_hand_count_by_their_bytes) {
  const auto kinds = [](int bytes, std::string_view op) {
    Job job = ddp_job();
    for (int step = 0; step < 2; ++step)
      job.forward("a").backward(false).all_reduce(bytes, op).step().zero_grad();
    return kinds_of(diagnosis(job));
  };
  EXPECT_THAT(kinds(144, "all_reduce"), IsEmpty());
  EXPECT_THAT(kinds(72, "all_reduce"), IsEmpty());
  EXPECT_THAT(kinds(4, "all_reduce"), ElementsAre("ddp.step_without_reduction"));
  EXPECT_THAT(kinds(144, "broadcast"), ElementsAre("ddp.step_without_reduction"));
}

TEST(StepRules, Local_steps_with_averaged_parameters_are_a_note) {
  Job job = ddp_job();
  for (int round = 0; round < 2; ++round) {
    for (int step = 0; step < 2; ++step)
      job.mark("ddp.no_sync").forward("ddp").backward(false).step().zero_grad();
    job.all_reduce(144);
  }
  const auto all = diagnosis(job);
  ASSERT_THAT(kinds_of(all), ElementsAre("ddp.local_steps"));
  EXPECT_EQ(Gravity::note, all[0].gravity);
}

TEST(StepRules, Accumulation_under_no_sync_ends_with_a_synchronised_backward) {
  const auto kinds = [](bool is_last_synced) {
    Job job = ddp_job();
    for (int step = 0; step < 2; ++step) {
      job.mark("ddp.no_sync").forward("ddp").backward(false);
      if (!is_last_synced) job.mark("ddp.no_sync");
      job.forward("ddp").backward(is_last_synced).step().zero_grad();
    }
    return kinds_of(diagnosis(job));
  };
  EXPECT_THAT(kinds(true), IsEmpty());
  EXPECT_THAT(kinds(false), ElementsAre("ddp.step_without_sync"));
}

// Recorders before hooktrace 1.1 wrote a step before its closure ran.
TEST(StepRules, An_old_step_before_its_closure_is_right) {
  Job job;
  job.model();
  for (int step = 0; step < 3; ++step) {
    job.mark("ddp.no_sync").backward(false).step();
    job.forward("ddp").backward(true).zero_grad();
  }
  EXPECT_THAT(diagnosis_of_texts({job.text()}), IsEmpty());
}

TEST(StepRules, Gradients_that_flow_from_step_to_step_are_named) {
  const auto kinds = [](bool clears) {
    Job job = ddp_job();
    for (int step = 0; step < 4; ++step) {
      if (step > 0) job.mark("gradients_kept:3", ",\"engine\":0");
      if (clears) job.zero_grad();
      job.forward("ddp").backward(true).step();
    }
    return kinds_of(diagnosis(job));
  };
  EXPECT_THAT(kinds(false), ElementsAre("optimizer.gradients_kept"));
  EXPECT_THAT(kinds(true), IsEmpty());
}

TEST(StepRules, An_optimizer_of_other_tensors_is_named) {
  Job job;
  job.model().optimizer("", 3);
  for (int step = 0; step < 2; ++step) job.backward(false).step(0).zero_grad();
  const auto all = diagnosis(job);
  ASSERT_THAT(kinds_of(all), ElementsAre("optimizer.holds_other_parameters"));
  EXPECT_THAT(all[0].what, HasSubstr("not one of its 3 parameters got a gradient"));
}

TEST(StepRules, What_is_trained_and_what_is_held_are_compared) {
  const auto kinds = [](std::string_view held, std::string_view more, int grads = 3) {
    Job job;
    job.model().record(more);
    job.optimizer(held);
    for (int step = 0; step < 2; ++step) job.backward(false).step(grads).zero_grad();
    const auto all = diagnosis_of_texts({job.newer()});
    for (const Diagnosis& one : all) EXPECT_EQ(Gravity::hazard, one.gravity);
    return kinds_of(all);
  };
  const std::string unused =
      R"({"rec":"param","id":3,"name":"c.weight","shape":[4,4],"dtype":"float32",)"
      R"("requires_grad":true})";
  EXPECT_THAT(kinds(kAll, unused), IsEmpty());
  EXPECT_THAT(kinds(R"("a.weight","b.weight","b.bias","c.weight")", unused),
              ElementsAre("optimizer.never_trained"));
  EXPECT_THAT(kinds(R"("a.weight","b.weight")", unused), ElementsAre("optimizer.trained_not_held"));
  // The job computed the fourth gradient itself and assigned it.
  EXPECT_THAT(kinds(R"("a.weight","b.weight","b.bias","c.weight")", unused, 4), IsEmpty());
}

TEST(StepRules, A_model_of_which_only_vectors_are_trained_is_named) {
  Job job;
  job.record(R"({"rec":"param","id":0,"name":"a.weight","shape":[4,4],"dtype":"float32",)"
             R"("requires_grad":false})");
  job.record(R"({"rec":"param","id":1,"name":"norm.weight","shape":[4],"dtype":"float32",)"
             R"("requires_grad":true})");
  job.optimizer(R"("norm.weight")");
  for (int step = 0; step < 2; ++step)
    job.begin(step + 1).accumulate(step + 1, "norm.weight").end(step + 1), job.step(1).zero_grad();
  EXPECT_THAT(kinds_of(diagnosis(job)), ElementsAre("model.only_vectors_trained"));
}

TEST(Ending, An_uncaught_exception_is_a_defect) {
  const auto of = [](std::string_view type, std::string_view more) {
    Job job;
    job.event("exc", -1, fmt::format(",\"type\":\"{}\",\"message\":\"no\"{}", type, more));
    return diagnosis_of_texts({job.newer()});
  };
  const auto all = of("ValueError", ",\"uncaught\":true");
  ASSERT_THAT(kinds_of(all), ElementsAre("process.exception"));
  EXPECT_EQ(Gravity::defect, all[0].gravity);
  EXPECT_THAT(all[0].what, HasSubstr("ValueError: no"));
  EXPECT_THAT(of("ValueError", ""), IsEmpty());
  EXPECT_EQ(Gravity::note, of("SystemExit", ",\"uncaught\":true").at(0).gravity);
}

// One rank fails by itself, the other by its absence.
TEST(Ending, The_rank_that_failed_is_told_and_the_one_that_waited_is_its_consequence) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 2; ++rank) {
    Job job(rank);
    job.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
    job.all_reduce(16);
    if (rank == 0) job.collective(1, "all_reduce", 32, "b", false);
    job.event("exc", -1,
              fmt::format(",\"type\":\"RuntimeError\",\"message\":\"{}\",\"uncaught\":true",
                          rank == 0 ? "Connection closed by peer" : "bad shape"));
    texts.push_back(job.newer());
  }
  const auto all = diagnosis_of_texts(texts);
  ASSERT_THAT(kinds_of(all), ElementsAre("process.exception"));
  EXPECT_THAT(all[0].ranks, ElementsAre(1));
  EXPECT_THAT(all[0].what, HasSubstr("bad shape"));
  EXPECT_THAT(all[0].what, HasSubstr("Connection closed by peer"));
}

// DeepSpeed #8224: 0.18.3 to 0.19.5 divide by the accumulation steps at the engine's outputs only.
TEST(DeepSpeedSigns, A_part_of_the_model_that_is_called_past_the_engine_is_a_hazard) {
  const auto kinds = [](std::string_view version, int accumulation, bool is_past_engine) {
    Job job(0, 1, fmt::format("\"deepspeed\":\"{}\"", version));
    job.mark(fmt::format("gradient_accumulation_steps:{}", accumulation), ",\"engine\":0");
    job.event("engine.call", -1, ",\"method\":\"engine.forward\",\"engine\":0");
    job.forward("enc");
    job.event("engine.return", -1, ",\"method\":\"engine.forward\",\"engine\":0");
    if (is_past_engine) job.forward("enc");
    return kinds_of(diagnosis(job.backward(false)));
  };
  EXPECT_THAT(kinds("0.18.9", 2, true), ElementsAre("deepspeed.loss_past_engine"));
  EXPECT_THAT(kinds("0.18.9", 2, false), IsEmpty());
  EXPECT_THAT(kinds("0.18.9", 1, true), IsEmpty());
  EXPECT_THAT(kinds("0.19.8", 2, true), IsEmpty());
}

// accelerate #3552: engine.step counts its own calls, whatever the caller believes.
TEST(DeepSpeedSigns, A_step_after_several_micro_batches_that_updates_nothing_is_a_hazard) {
  const auto kinds = [](int micro_batches, bool updates) {
    Job job(0, 1, "\"deepspeed\":\"0.19.8\"");
    const auto bracket = [&](std::string_view method) {
      for (const char* kind : {"engine.call", "engine.return"})
        job.event(kind, -1, fmt::format(",\"method\":\"{}\",\"engine\":0", method));
    };
    job.mark("gradient_accumulation_steps:4", ",\"engine\":0");
    for (int micro = 0; micro < micro_batches; ++micro)
      for (const char* method : {"engine.forward", "engine.backward"}) bracket(method);
    job.event("engine.call", -1, ",\"method\":\"engine.step\",\"engine\":0");
    if (updates) bracket("engine.take_model_step");
    job.event("engine.return", -1, ",\"method\":\"engine.step\",\"engine\":0");
    const auto all = kinds_of(diagnosis(job));
    return std::count(all.begin(), all.end(), "deepspeed.step_below_boundary");
  };
  EXPECT_EQ(kinds(2, false), 1);
  EXPECT_EQ(kinds(2, true), 0);
  EXPECT_EQ(kinds(1, false), 0);
}

TEST(NotObserved, Rules_that_need_lost_events_are_left_out_with_the_reason) {
  const auto job_with = [](std::string_view lost) {
    Job job = ddp_job();
    if (!lost.empty())
      job.record(
          fmt::format("{{\"rec\":\"note\",\"text\":\"buckets failed\",\"observer\":"
                      "\"ddp.buckets\",\"lost\":[\"{}\"]}}",
                      lost));
    for (int step = 0; step < 2; ++step) job.forward("ddp").backward(false).step().zero_grad();
    return job;
  };
  EXPECT_THAT(kinds_of(diagnosis(job_with("bucket.*"))), ElementsAre("recorder.not_observed"));
  EXPECT_THAT(kinds_of(diagnosis(job_with("ckpt.*"))),
              ElementsAre("ddp.step_without_reduction", "recorder.not_observed"));
}

}  // namespace
}  // namespace zeroproof
