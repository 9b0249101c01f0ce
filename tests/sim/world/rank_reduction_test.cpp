// Preemption::of_ranks beside the search of all orders: where it matters how far one rank is when
// another one ends, both come to the same outcomes.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "model/check.h"
#include "sim/explorer.h"
#include "sim/schedulers/exhaustive.h"
#include "sim/world/sim_world.h"

namespace zeroproof {
namespace {

constexpr int kRounds = 4;

// Rounds of work on two side streams, each waited for. Rank 1 fails in its round `fails_in`.
void work(Runtime& runtime, int fails_in, int& rounds) {
  Kernels& kernels = runtime.kernels();
  Stream& reduction = runtime.stream(StreamRole::reduction);
  Stream& offload = runtime.stream(StreamRole::offload);
  const Tensor one = runtime.memory().allocate(1, DType::float32);
  const Tensor other = runtime.memory().allocate(1, DType::float32);
  for (rounds = 0; rounds < kRounds; ++rounds) {
    if (runtime.rank() == 1 && rounds == fails_in) throw std::runtime_error("planned");
    kernels.fill(reduction, Span::of(one), rounds);
    kernels.fill(offload, Span::of(other), rounds);
    reduction.wait(offload);
    reduction.synchronize();
  }
}

struct Found {
  std::map<int, std::set<int>> outcomes;  // by the round in which rank 1 failed: rank 0's rounds
  std::uint64_t executions = 0;
};

Found search(Preemption preemption) {
  Found found;
  for (int fails_in = 0; fails_in <= kRounds; ++fails_in) {
    ExhaustiveScheduler scheduler;
    const ExploreResult result = explore(
        [&](Chooser& chooser) {
          std::vector<int> rounds(2);
          SimWorld world({.world_size = 2, .preemption = preemption}, chooser);
          world.try_run([&](Runtime& runtime) {
            work(runtime, fails_in, rounds[static_cast<std::size_t>(runtime.rank())]);
          });
          found.outcomes[fails_in].insert(rounds[0]);
          return Outcome{.final_state = world.fingerprint()};
        },
        scheduler, {});
    EXPECT_TRUE(result.has_covered_every_order());
    found.executions += result.executions;
  }
  return found;
}

TEST(RankReduction, Comes_to_every_outcome_that_all_orders_come_to) {
  const Found all = search(Preemption::when_blocked);
  const Found reduced = search(Preemption::of_ranks);
  EXPECT_EQ(all.outcomes, reduced.outcomes);
  EXPECT_EQ(all.outcomes.at(2).size(), static_cast<std::size_t>(kRounds + 1));
  EXPECT_EQ(all.outcomes.at(kRounds), std::set<int>{kRounds});  // no rank failed
  EXPECT_LT(reduced.executions * 2, all.executions);
}

// A program that asks how far a stream is can distinguish two orders of its work.
TEST(RankReduction, Refuses_a_program_that_asks_how_far_its_work_is) {
  FirstChooser chooser;
  SimWorld world({.preemption = Preemption::of_ranks}, chooser);
  EXPECT_THROW(world.run([](Runtime& runtime) {
    Stream& reduction = runtime.stream(StreamRole::reduction);
    reduction.query(reduction.record());
  }),
               CheckFailed);
}

}  // namespace
}  // namespace zeroproof
