// Programs in the simulated world beside host threads.
#include "props/hunt/beside.h"

#include <gtest/gtest.h>

#include <chrono>

#include "props/program/draw.h"
#include "props/program/source_chooser.h"

namespace zeroproof::hunt {
namespace {

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

TEST(ProgramBeside, DrawnProgramsAreTheSameOnHostThreads) {
  const BesideReport report = search_beside({.seed = 5, .cases_max = 80, .time_max_ns = INT64_MAX},
                                            nullptr, {.now_ns = now});
  EXPECT_EQ(report.cases, 80U);
  EXPECT_GT(report.tokens, 10'000U);
  EXPECT_GT(report.values, 10'000U);
  for (const BesideFound& found : report.findings)
    ADD_FAILURE() << "case " << found.case_number << ": " << found.difference << "\n" << found.text;
}

// Checkpoints are files that all ranks share, also where ranks are threads.
TEST(ProgramBeside, ResumedWorldsAreTheSameOnHostThreads) {
  int resumed = 0;
  for (std::uint64_t number = 0; resumed < 5 && number < 2000; ++number) {
    DrawnProgram drawn = draw_case(program::Source(case_seed(9, number)));
    if (!drawn.program || drawn.program->runnable().segments().size() < 2) continue;
    ++resumed;
    program::SourceChooser chooser(drawn.source);
    EXPECT_EQ(run_beside(drawn.program->runnable(), nullptr, chooser).difference, "") << number;
  }
  EXPECT_EQ(resumed, 5);
}

}  // namespace
}  // namespace zeroproof::hunt
