// replay --policy: what another policy would have done with recorded hooks.
#include "props/replay/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string recorded_text(const std::string& name) {
  return ZP_SOURCE_DIR "/tests/traces/deepspeed-edaa7221-cuda/" + name + ".jsonl.gz";
}

WhatIfReport under(const std::string& name, const std::string& policy,
                   PolicyMode mode = PolicyMode::graph_task_callback) {
  auto report = what_if(recorded_text(name), policy, mode);
  EXPECT_TRUE(report.has_value()) << report.error().text;
  return report.value_or(WhatIfReport{});
}

// The job whose manual backward over a reentrant checkpoint motivated #7780.
TEST(WhatIf, Pr7665_loses_what_a_reentrant_checkpoint_recomputes) {
  const WhatIfReport report = under("ckpt_reentrant_manual__z1_fp32_w2_r0", "deepspeed-0.18.3");
  ASSERT_TRUE(report.is_applicable());
  EXPECT_GT(report.early_epilogues, 0U);
  EXPECT_THAT(report.lines, Contains(HasSubstr("too early")));
  EXPECT_THAT(report.lines, Contains(HasSubstr("uses no reduced gradient of")));
  EXPECT_FALSE(report.missed.empty());
}

TEST(WhatIf, Later_policies_keep_the_same_job_whole) {
  for (const char* policy :
       {"deepspeed-0.18.5", "deepspeed-0.18.7", "deepspeed-pr8245", "x2", "exact"}) {
    const WhatIfReport report = under("ckpt_reentrant_manual__z1_fp32_w2_r0", policy);
    EXPECT_THAT(report.missed, IsEmpty()) << policy;
    EXPECT_EQ(0U, report.early_epilogues) << policy;
    EXPECT_EQ(report.backwards, report.epilogues) << policy;
  }
}

TEST(WhatIf, Engine_backward_hides_the_difference) {
  const WhatIfReport report = under("ckpt_reentrant__z1_fp32_w2_r0", "deepspeed-0.18.3");
  ASSERT_TRUE(report.is_applicable());
  EXPECT_THAT(report.missed, IsEmpty());
}

TEST(WhatIf, Says_that_a_failed_backward_is_recovered_from) {
  const WhatIfReport report = under("exception_recovery__z1_fp32_w1_r0", "exact");
  EXPECT_THAT(report.lines, Contains(HasSubstr("drops")));
}

TEST(WhatIf, Names_a_policy_that_does_not_exist) {
  const auto report =
      what_if(recorded_text("mlp__z1_fp32_w2_r0"), "pr9", PolicyMode::graph_task_callback);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(ErrorCode::usage, report.error().code);
}

// The recorded policy itself, driven by its own hooks, ran as many epilogues as were recorded.
TEST(WhatIf, Under_the_recorded_policy_is_what_was_recorded) {
  for (const char* name : {"mlp__z2_fp32_w2_r0", "ckpt_reentrant_manual__z2_fp32_w2_r0",
                           "tiled_loss__z1_fp32_w1_r0", "two_engines__z1_fp32_w1_r0"}) {
    const WhatIfReport report = under(name, "deepspeed-0.18.7");
    NameTable names;
    auto reader = TraceReader::open(recorded_text(name), names);
    ASSERT_TRUE(reader.has_value());
    std::uint64_t recorded_epilogues = 0;
    for (;;) {
      const auto record = reader->next();
      ASSERT_TRUE(record.has_value());
      if (*record == nullptr) break;
      const HookEvent* event = (*record)->event();
      if (event != nullptr && event->kind == EventKind::engine_call &&
          names.text(event->name) == "engine.backward_epilogue")
        ++recorded_epilogues;
    }
    EXPECT_EQ(recorded_epilogues, report.epilogues) << name;
    EXPECT_THAT(report.missed, IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace zeroproof
