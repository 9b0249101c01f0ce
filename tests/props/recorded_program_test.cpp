// Programs of recorded jobs: the statements are those of the job, and our engine runs every one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "props/interpreter/program_run.h"
#include "props/program/program_text.h"
#include "props/replay/recorded_program.h"
#include "props/replay/trace_paths.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kSteps = 2;

std::string trace_file(const std::string& name) {
  return std::string(ZP_SOURCE_DIR "/tests/traces/") + name;
}

std::string text_of(const std::string& name) {
  const auto recorded = program_of_recording(trace_file(name), kSteps);
  return recorded ? program::program_text(recorded->program, nullptr) : recorded.error().text;
}

struct RecordedCase {
  const char* name;
  const char* file;
  const char* text;
};

// By reading the recorded jobs (recorder/jobs has their sources).
const RecordedCase kRecordedCases[] = {
    {"Checkpoints", "deepspeed-edaa7221-cuda/ckpt_reentrant__z1_bf16_w1_r0.jsonl.gz",
     R"(1 rank, stage 1, bf16
model_a = Sequential(inp=Linear(3, 3, has_bias=True), checkpoint0=Checkpoint(b1_a=Linear(3, 3,
    has_bias=True), b1_b=Linear(3, 3, has_bias=True)), checkpoint1=Checkpoint(b2_a=Linear(3, 3,
    has_bias=True), b2_b=Linear(3, 3, has_bias=True)), head=Linear(3, 2, has_bias=True))
a = initialize(model_a)
g1 = a(x)
a.backward(g1)
a.step()
g2 = a(x)
a.backward(g2)
a.step()
)"},
    {"RetainedGraphs", "deepspeed-edaa7221-cuda/two_losses_retain__z2_fp32_w1_r0.jsonl.gz",
     R"(1 rank, stage 2
model_a = Sequential(trunk=Linear(3, 3, has_bias=True), ha=Linear(3, 2, has_bias=True),
    hb=Linear(3, 2, has_bias=True))
a = initialize(model_a)
g1 = a(x)
a.backward(g1, retain_graph=True)
a.backward(g1)
a.step()
g2 = a(x)
a.backward(g2, retain_graph=True)
a.backward(g2)
a.step()
)"},
    {"EnginesOfOneLoss", "deepspeed-edaa7221-cuda/two_engines__z1_fp32_w2_r0.jsonl.gz",
     R"(2 ranks, stage 1
model_a = Sequential(A_l1=Linear(3, 3, has_bias=True), A_l2=Linear(3, 3, has_bias=True))
model_b = Sequential(B_l1=Linear(3, 3, has_bias=True), B_l2=Linear(3, 3, has_bias=True))
a = initialize(model_a)
b = initialize(model_b)
g1 = a(x)
g2 = b(x)
sum1 = g1 + g2
sum1.backward()
a.step()
b.step()
)"},
    {"UnusedParameters", "deepspeed-edaa7221-cuda/unused_params__z2_fp32_w2_r0.jsonl.gz",
     R"(2 ranks, stage 2
model_a = Sequential(l1=Linear(3, 3, has_bias=True), l2=Linear(3, 2, has_bias=True),
    unused=Unused(extra=Linear(3, 3, has_bias=True)))
a = initialize(model_a)
g1 = a(x)
a.backward(g1)
a.step()
g2 = a(x)
a.backward(g2)
a.step()
)"},
    {"NoSyncOfDdp", "recorder-torch2.11.0-cpu/ddp_no_sync__w2_r0.jsonl.gz",
     R"(2 ranks, stage 0
model_a = Sequential(l1=Linear(3, 3, has_bias=True), l2=Linear(3, 3, has_bias=True))
a = initialize(model_a)
with a.no_sync():
    g1 = a(x)
    a.backward(g1)
g2 = a(x)
a.backward(g2)
a.step()
with a.no_sync():
    g3 = a(x)
    a.backward(g3)
g4 = a(x)
a.backward(g4)
a.step()
)"}};

class RecordedProgramOf : public ::testing::TestWithParam<RecordedCase> {};

TEST_P(RecordedProgramOf, Does_what_the_job_did) {
  EXPECT_EQ(GetParam().text, text_of(GetParam().file));
}

INSTANTIATE_TEST_SUITE_P(Each, RecordedProgramOf, ::testing::ValuesIn(kRecordedCases),
                         [](const auto& one) { return one.param.name; });

TEST(RecordedProgram, Of_every_recording_is_one_that_our_engine_runs) {
  int made = 0;
  int without_forward = 0;
  for (const char* folder : {"deepspeed-edaa7221-cuda", "recorder-torch2.11.0-cpu"}) {
    const auto paths = trace_paths(trace_file(folder));
    for (const std::string& path : *paths) {
      SCOPED_TRACE(path);
      const auto recorded = program_of_recording(path, kSteps);
      if (!recorded) {
        EXPECT_THAT(recorded.error().text, ::testing::HasSubstr("it has no forward of a module"));
        ++without_forward;
        continue;
      }
      ++made;
      const auto runnable = program::RunnableProgram::make(recorded->program);
      ASSERT_TRUE(runnable) << runnable.error().text;
      const program::ProgramRun run = program::run_program(**runnable, {});
      EXPECT_FALSE(run.has_failed());
    }
  }
  EXPECT_LT(200, made);
  EXPECT_GT(30, without_forward);
}

}  // namespace
}  // namespace zeroproof
