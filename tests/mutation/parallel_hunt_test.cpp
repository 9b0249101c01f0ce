// A hunt by several threads finds what one finds.
#include "props/hunt/parallel_hunt.h"

#include <gtest/gtest.h>

#include <chrono>

#include "props/mutation/mutants.h"

namespace zeroproof::mutation {
namespace {

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

TEST(ParallelHunt, FindsTheSameAsOneThread) {
  std::vector<const Fault*> faults;
  for (const char* id : {"A21", "C03", "R07", "R24", "R17"}) faults.push_back(find_fault(id));
  const std::vector<hunt::Mutant> mutants = mutants_of(faults);
  const hunt::ProgramHuntOptions options{
      .seed = 31, .cases_max = 30, .time_max_ns = INT64_MAX, .shrink_runs = 20};
  std::size_t called = 0;
  const auto count = [&](const hunt::ProgramFound&) { ++called; };
  const auto alone = hunt::hunt_all(mutants, options, 1, {.now_ns = now}, count);
  const auto together = hunt::hunt_all(mutants, options, 3, {.now_ns = now}, count);
  EXPECT_EQ(called, 2 * mutants.size());
  ASSERT_EQ(together.size(), mutants.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    EXPECT_EQ(together[i].fault, &mutants[i]);
    EXPECT_EQ(together[i].is_found, alone[i].is_found) << mutants[i].id;
    EXPECT_EQ(together[i].case_number, alone[i].case_number) << mutants[i].id;
    EXPECT_EQ(together[i].counterexample.values, alone[i].counterexample.values) << mutants[i].id;
    found += alone[i].is_found ? 1U : 0U;
  }
  EXPECT_GE(found, 2U);
}

}  // namespace
}  // namespace zeroproof::mutation
