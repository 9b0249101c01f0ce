#include "sim/explorer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/schedulers/exhaustive.h"
#include "sim/schedulers/fifo.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/replay.h"
#include "sim/schedulers/twice.h"
#include "tests/sim/toy_world.h"

namespace zeroproof {
namespace {

using toy::MonitoredPoset;
using toy::Poset;
using toy::Shows;

ExploreResult explore_all(const RunFunction& world, Pruning pruning) {
  ExhaustiveScheduler exhaustive(pruning);
  return explore(world, exhaustive, {});
}

// Linear extensions by dynamic programming over down-sets: another way to the same number.
OrderCount linear_extensions(const Poset& poset) {
  std::vector<OrderCount> orders(std::size_t{1} << poset.size());
  orders[0] = OrderCount(1);
  for (std::size_t done = 0; done < orders.size(); ++done) {
    for (std::size_t event = 0; event < poset.size(); ++event) {
      const auto has_run = [&](std::size_t e) { return (done >> e & 1) != 0; };
      const auto& needs = poset.needs[event];
      if (has_run(event) || !std::all_of(needs.begin(), needs.end(), has_run)) continue;
      orders[done | std::size_t{1} << event] += orders[done];
    }
  }
  return orders.back();
}

MonitoredPoset random_world() {
  MonitoredPoset world;
  const auto size = *rc::gen::inRange<std::size_t>(1, 7);
  world.poset = toy::antichain(size);
  for (std::size_t event = 1; event < size; ++event) {
    for (std::size_t earlier = 0; earlier < event; ++earlier) {
      if (*rc::gen::inRange(0, 4) == 0) world.poset.needs[event].push_back(earlier);
    }
  }
  world.trigger =
      *rc::gen::container<std::vector<std::size_t>>(size, rc::gen::inRange<std::size_t>(0, size));
  world.shows = *rc::gen::element(Shows::choices, Shows::every_state);
  return world;
}

RC_GTEST_PROP(Explorer, Pruning_changes_neither_count_nor_findings_nor_shortest_runs, ()) {
  const MonitoredPoset world = random_world();
  const ExploreResult plain = explore_all(world, Pruning::off);
  const ExploreResult pruned = explore_all(world, Pruning::by_fingerprint);

  RC_ASSERT(plain.end == ExploreEnd::exhausted);
  RC_ASSERT(pruned.end == ExploreEnd::exhausted);
  const OrderCount expected = linear_extensions(world.poset);
  RC_ASSERT(OrderCount(plain.complete_executions) == expected);
  RC_ASSERT(plain.progress.scheduler.complete_orders.value() == expected);
  RC_ASSERT(pruned.progress.scheduler.complete_orders.value() == expected);
  RC_ASSERT(pruned.executions <= plain.executions);

  RC_ASSERT(plain.findings.size() == pruned.findings.size());
  for (std::size_t i = 0; i < plain.findings.size(); ++i) {
    const FailingRun& a = plain.findings[i].shortest;
    const FailingRun& b = pruned.findings[i].shortest;
    RC_ASSERT(plain.findings[i].property == pruned.findings[i].property);
    RC_ASSERT(a.events == b.events);
    RC_ASSERT(a.choices == b.choices);
    RC_ASSERT(a.order == b.order);
  }
}

RC_GTEST_PROP(Explorer, Every_finding_is_reproduced_by_its_choices, ()) {
  const MonitoredPoset world = random_world();
  for (const FailingProperty& finding : explore_all(world, Pruning::by_fingerprint).findings) {
    ReplayScheduler replay(finding.shortest.choices);
    const ExploreResult again = explore(world, replay, {});
    RC_ASSERT(again.end == ExploreEnd::exhausted);
    const auto same = std::find_if(
        again.findings.begin(), again.findings.end(),
        [&](const FailingProperty& other) { return other.property == finding.property; });
    RC_ASSERT(same != again.findings.end());
    RC_ASSERT(same->first.events == finding.shortest.events);
    RC_ASSERT(same->first.order == finding.shortest.order);
  }
}

TEST(Explorer, Finds_the_lost_update_that_the_preferred_order_hides) {
  FifoScheduler fifo;
  EXPECT_TRUE(explore(toy::lost_update, fifo, {}).findings.empty());

  const ExploreResult result = explore_all(toy::lost_update, Pruning::by_fingerprint);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.progress.scheduler.complete_orders, OrderCount(6));
  // Thread 0 loads, thread 1 loads, then thread 0 stores first and thread 1 loses its update.
  EXPECT_EQ(result.findings[0].shortest.order, "0101");
  EXPECT_EQ(result.findings[0].shortest.choices, (Choices{0, 1, 0}));
  EXPECT_EQ(result.findings[0].first.execution, 1u);
}

TEST(Explorer, Random_finds_the_lost_update_and_stops_there_when_asked) {
  RandomScheduler random(5);
  const auto result =
      explore(toy::lost_update, random, {.executions = 100, .stops_at_first_finding = true});
  EXPECT_EQ(result.end, ExploreEnd::first_finding);
  EXPECT_EQ(result.findings.at(0).failing_executions, 1u);
  EXPECT_EQ(result.executions, result.findings.at(0).first.execution + 1);
}

// The warning of RunFunction, shown: a fingerprint that forgets the verdict loses it. The state
// after {0, 1} is first reached by the good order, and the bad one is pruned there.
TEST(Explorer, Loses_a_finding_when_the_fingerprint_leaves_the_monitor_out) {
  const RunFunction forgetful = [](Chooser& chooser) {
    static constexpr std::string_view kNames[] = {"0", "1"};
    Outcome outcome;
    const bool is_bad = chooser.choose({"first", kNames, Fingerprint{1, 0}}) == 1;
    chooser.choose({"second", kNames, Fingerprint{2, 0}});  // should depend on is_bad
    if (is_bad) outcome.falsified.push_back({0, 1});
    return outcome;
  };
  EXPECT_EQ(explore_all(forgetful, Pruning::off).findings.size(), 1u);
  EXPECT_EQ(explore_all(forgetful, Pruning::by_fingerprint).findings.size(), 0u);
}

TEST(Explorer, Keeps_to_its_budget) {
  const MonitoredPoset world{toy::antichain(6), {}};
  RandomScheduler random(1);
  const auto by_executions = explore(world, random, {.executions = 7});
  EXPECT_EQ(by_executions.end, ExploreEnd::budget);
  EXPECT_EQ(by_executions.complete_executions, 7u);
  EXPECT_EQ(by_executions.progress.steps, 35u);
  EXPECT_EQ(by_executions.progress.deepest, 5u);

  const auto by_steps = explore(world, random, {.steps = 12});
  EXPECT_EQ(by_steps.end, ExploreEnd::budget);
  EXPECT_EQ(by_steps.progress.steps, 12u);
  EXPECT_EQ(by_steps.complete_executions, 2u);
}

TEST(Explorer, A_budget_does_not_make_a_repeated_run_look_unsteady) {
  for (std::uint64_t steps = 1; steps < 40; ++steps) {
    ExhaustiveScheduler exhaustive;
    TwiceScheduler twice(exhaustive);
    const auto result = explore(MonitoredPoset{toy::antichain(4), {}}, twice, {.steps = steps});
    EXPECT_EQ(result.end, ExploreEnd::budget) << steps << result.divergence;
  }
}

TEST(Explorer, Obeys_the_caller_between_and_within_executions) {
  const MonitoredPoset world{toy::antichain(5), {}};
  int asked = 0;
  ExploreWatch watch;
  watch.should_stop = [&] { return ++asked > 4 ? StopRequest::interrupted : StopRequest::none; };
  RandomScheduler random(1);
  const auto result = explore(world, random, {}, watch);
  EXPECT_EQ(result.end, ExploreEnd::interrupted);
  EXPECT_GT(result.executions, 0u);

  const RunFunction endless = [](Chooser& chooser) -> Outcome {
    static constexpr std::string_view kNames[] = {"a", "b"};
    for (std::uint64_t step = 0;; ++step)
      chooser.choose({"toy.endless", kNames, Fingerprint{step, 0}});
  };
  watch.should_stop = [&] { return ++asked > 8 ? StopRequest::time_over : StopRequest::none; };
  EXPECT_EQ(explore(endless, random, {}, watch).end, ExploreEnd::time_over);
}

TEST(Explorer, Reports_progress_after_every_execution) {
  std::vector<std::uint64_t> executions;
  ExploreWatch watch;
  watch.on_progress = [&](const ExploreProgress& progress) {
    executions.push_back(progress.executions);
  };
  ExhaustiveScheduler exhaustive(Pruning::off);
  const auto result = explore(MonitoredPoset{toy::antichain(3), {}}, exhaustive, {}, watch);
  EXPECT_EQ(executions, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(result.progress.scheduler.complete_orders, OrderCount(6));
}

TEST(Explorer, Lets_other_exceptions_pass) {
  const RunFunction broken = [](Chooser&) -> Outcome { throw std::runtime_error("broken"); };
  FifoScheduler fifo;
  EXPECT_THROW(explore(broken, fifo, {}), std::runtime_error);
}

}  // namespace
}  // namespace zeroproof
