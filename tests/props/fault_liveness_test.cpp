// A fault at any event of a window: when it meets all ranks, zero_grad is all that the next windows
// need to be what they would have been; when it meets one rank, no rank hangs, and a fresh world
// takes over.
#include "props/train/fault_run.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/schedulers/random.h"

namespace zeroproof::train {
namespace {

struct FaultCase {
  const TrainScenario* scenario;
  TrainCell cell;
};

std::vector<FaultCase> cases() {
  std::vector<FaultCase> all;
  for (const char* name : {"plain"})
    for (const int stage : {0, 1, 2})
      for (const BackwardKind backward : {BackwardKind::engine, BackwardKind::tensor}) {
        const auto scenario = find_scenario(name);
        TrainCell cell;
        cell.scenario = name;
        cell.stage = stage;
        cell.backward = backward;
        if (scenario && is_applicable(**scenario, cell) && !expected_refusal(**scenario, cell))
          all.push_back({*scenario, cell});
      }
  return all;
}

FaultRun run_first(const FaultCase& one, const std::optional<sim::Fault>& fault) {
  FirstChooser chooser;
  return run_with_fault(*one.scenario, one.cell, {.fault = fault}, chooser);
}

// Empty: as promised.
std::string problem(const FaultCase& one, const FaultRun& clean, const sim::Fault& fault,
                    const FaultRun& run) {
  if (!run.has_struck) return describe(fault) + " did not strike";
  if (fault.rank < 0) {
    const std::string difference = difference_after_fault(run, clean, one.cell);
    return difference.empty() ? "" : describe(fault) + ": " + difference;
  }
  if (!run.needs_fresh_world) {
    std::string text = describe(fault) + ": a rank went on alone";
    for (const RankRun& rank : run.cell.ranks)
      text += rank.error ? "; " + text_of(rank.error) : "; no error";
    return text;
  }
  for (const sim::Finding& finding : run.cell.findings)
    return describe(fault) + ": " + finding.text;
  return {};
}

class FaultLiveness : public ::testing::TestWithParam<FaultCase> {};

TEST_P(FaultLiveness, Clean_windows_are_the_baseline_whatever_failed_before) {
  const FaultCase& one = GetParam();
  const FaultRun clean = run_first(one, std::nullopt);
  ASSERT_EQ(difference_after_fault(clean, clean, one.cell), "");
  ASSERT_GT(clean.places.size(), 50U);
  int problems = 0;
  for (const sim::Fault& fault : clean.places) {
    const std::string text = problem(one, clean, fault, run_first(one, fault));
    if (!text.empty() && ++problems <= 10) ADD_FAILURE() << text;
  }
  EXPECT_EQ(problems, 0) << "of " << clean.places.size();
}

INSTANTIATE_TEST_SUITE_P(All, FaultLiveness, ::testing::ValuesIn(cases()), [](const auto& given) {
  const TrainCell& cell = given.param.cell;
  return cell.scenario + "_stage" + std::to_string(cell.stage) + "_" +
         std::string(backward_name(cell.backward));
});

// The fault and the order of the ranks come from one chooser: a seed is an execution.
TEST(FaultChoices, Go_through_the_chooser_like_every_other_order) {
  const FaultCase one = cases().front();
  const FaultRun clean = run_first(one, std::nullopt);
  RandomScheduler scheduler(5);
  std::map<sim::FaultKind, int> struck;
  for (int execution = 0; execution < 200; ++execution) {
    scheduler.new_execution();
    const auto fault = sim::choose_fault(scheduler, clean.places);
    const FaultRun run = run_with_fault(*one.scenario, one.cell, {.fault = fault}, scheduler);
    scheduler.end_execution({});
    if (!fault) continue;
    EXPECT_EQ(problem(one, clean, *fault, run), "");
    ++struck[fault->kind];
  }
  EXPECT_GE(struck.size(), 3U);
}

}  // namespace
}  // namespace zeroproof::train
