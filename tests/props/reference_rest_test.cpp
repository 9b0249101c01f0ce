// What engines hold between two windows, against the reference's bound.
#include <gtest/gtest.h>

#include "props/reference/rest.h"
#include "props/train/cell_run.h"
#include "props/train/reference_worlds.h"

namespace zeroproof::reference {
namespace {

using train::Precision;
using train::TrainCell;

struct RestRow {
  std::string_view scenario;
  Precision precision;
  int ranks;
};

TEST(ReferenceRest, Bounds_what_is_live_after_each_window) {
  constexpr RestRow kRows[] = {{"plain", Precision::float32, 2}, {"plain", Precision::bf16, 3},
                               {"gas2", Precision::fp16, 2},     {"frozen", Precision::float32, 4},
                               {"tied", Precision::bf16, 2},     {"unused", Precision::float32, 1}};
  for (const RestRow& row : kRows)
    for (int stage = 0; stage <= 3; ++stage) {
      TrainCell cell{.scenario = std::string(row.scenario),
                     .stage = stage,
                     .world_size = row.ranks,
                     .precision = row.precision};
      const train::TrainScenario& scenario = **train::find_scenario(cell.scenario);
      const World world =
          train::reference_worlds(scenario, cell, train::unseen_of(scenario, cell)).front();
      ASSERT_TRUE(bytes_at_rest(world).has_value());
      const train::CellRun run = train::run_ranks(scenario, cell, {});
      for (const train::RankRun& rank : run.ranks) {
        Ledger ledger;
        for (const std::int64_t live : rank.live_bytes) judge_rest({world}, live, ledger);
        EXPECT_GT(ledger.coverage().applied[static_cast<std::size_t>(Rule::rest_bytes)], 0);
        for (const Finding& finding : ledger.findings())
          ADD_FAILURE() << train::flags_of(cell) << ": " << finding.text;
      }
    }
}

TEST(ReferenceRest, Finds_one_byte_too_many) {
  TrainCell cell;
  const train::TrainScenario& scenario = **train::find_scenario(cell.scenario);
  const World world =
      train::reference_worlds(scenario, cell, train::unseen_of(scenario, cell)).front();
  Ledger ledger;
  judge_rest({world}, *bytes_at_rest(world), ledger);
  EXPECT_TRUE(ledger.findings().empty());
  judge_rest({world}, *bytes_at_rest(world) + 1, ledger);
  EXPECT_EQ(ledger.findings().size(), 1U);
}

}  // namespace
}  // namespace zeroproof::reference
