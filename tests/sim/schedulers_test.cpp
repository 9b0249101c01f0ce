#include <gtest/gtest.h>

#include <cmath>

#include <set>

#include "sim/explorer.h"
#include "sim/schedulers/exhaustive.h"
#include "sim/schedulers/fifo.h"
#include "sim/schedulers/pct.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/record.h"
#include "sim/schedulers/replay.h"
#include "sim/schedulers/twice.h"
#include "tests/sim/toy_world.h"

namespace zeroproof {
namespace {

using toy::antichain;
using toy::MonitoredPoset;
using toy::Shows;

// The orders that a scheduler runs to their end, in order.
std::vector<std::string> orders_run(const RunFunction& world, Scheduler& scheduler,
                                    std::uint64_t executions = Budget::kUnlimited) {
  std::vector<std::string> orders;
  const RunFunction watched = [&](Chooser& chooser) {
    Outcome outcome = world(chooser);
    orders.push_back(outcome.order);
    return outcome;
  };
  explore(watched, scheduler, {.executions = executions});
  return orders;
}

SchedulerStats stats_after(const RunFunction& world, ExhaustiveScheduler&& scheduler) {
  return explore(world, scheduler, {}).progress.scheduler;
}

TEST(FifoScheduler, Runs_the_first_options_once) {
  FifoScheduler fifo;
  EXPECT_EQ(orders_run(MonitoredPoset{antichain(3), {}}, fifo), std::vector<std::string>{"0 1 2"});
}

TEST(RandomScheduler, Depends_on_the_seed_and_the_execution_only) {
  const MonitoredPoset world{antichain(5), {}};
  RandomScheduler one(7), again(7), other(8);
  const auto orders = orders_run(world, one, 50);
  EXPECT_EQ(orders, orders_run(world, again, 50));
  EXPECT_NE(orders, orders_run(world, other, 50));
  EXPECT_GT(std::set<std::string>(orders.begin(), orders.end()).size(), 20u);
}

// The numbers come from an independent pcg32 (PCG-XSH-RR, stream = execution).
TEST(RandomScheduler, Draws_the_same_numbers_on_every_platform) {
  RandomScheduler random(20261120);
  EXPECT_EQ(orders_run(MonitoredPoset{antichain(6), {}}, random, 2),
            (std::vector<std::string>{"4 3 2 1 0 5", "5 1 3 2 4 0"}));
}

TEST(RandomScheduler, Draws_nothing_where_there_is_one_option) {
  toy::Poset fan = antichain(5);
  for (std::size_t event = 1; event < 5; ++event) fan.needs[event] = {0};
  RandomScheduler one(7), other(7);
  EXPECT_EQ(orders_run(MonitoredPoset{fan, {}}, one, 5),
            orders_run(MonitoredPoset{fan, {}, Shows::every_state}, other, 5));
}

TEST(RandomScheduler, Reaches_every_order_about_equally_often) {
  RandomScheduler random(1);
  std::map<std::string, int> times;
  for (const std::string& order : orders_run(MonitoredPoset{antichain(3), {}}, random, 6000)) {
    ++times[order];
  }
  ASSERT_EQ(times.size(), 6u);
  for (const auto& [order, count] : times) EXPECT_NEAR(count, 1000, 150) << order;
}

TEST(ExhaustiveScheduler, Without_pruning_runs_every_order_in_dictionary_order) {
  ExhaustiveScheduler exhaustive(Pruning::off);
  EXPECT_EQ(orders_run(MonitoredPoset{antichain(3), {}}, exhaustive),
            (std::vector<std::string>{"0 1 2", "0 2 1", "1 0 2", "1 2 0", "2 0 1", "2 1 0"}));
}

TEST(ExhaustiveScheduler, Counts_n_factorial_orders_over_two_to_the_n_states) {
  const auto stats =
      stats_after(MonitoredPoset{antichain(10), {}, Shows::every_state}, ExhaustiveScheduler());
  EXPECT_TRUE(stats.has_exhausted);
  EXPECT_EQ(stats.complete_orders, OrderCount(3'628'800));
  EXPECT_EQ(stats.states, 1u << 10);
  EXPECT_EQ(stats.transitions, 10u << 9);
}

TEST(ExhaustiveScheduler, Counts_the_same_orders_when_only_choices_are_shown) {
  const auto stats = stats_after(MonitoredPoset{antichain(10), {}}, ExhaustiveScheduler());
  EXPECT_EQ(stats.complete_orders, OrderCount(3'628'800));
  EXPECT_EQ(stats.states, (1u << 10) - 10 - 1);  // at least two events left
}

TEST(ExhaustiveScheduler, Counts_one_order_where_nothing_can_be_chosen) {
  const auto stats = stats_after(MonitoredPoset{toy::chain(5), {}}, ExhaustiveScheduler());
  EXPECT_EQ(stats.complete_orders, OrderCount(1));
  EXPECT_EQ(stats.states, 0u);
}

// Up and down forever: state 0 comes back on its own path, and only `stop` ends an execution.
Outcome world_with_a_cycle(Chooser& chooser) {
  static constexpr std::string_view kOptions[] = {"swing", "stop"};
  Outcome outcome;
  for (std::uint64_t step = 0;; ++step) {
    const Fingerprint state{step % 2, 1};
    if (chooser.choose({"toy.swing", kOptions, state}) == 0) continue;
    if (step % 2 == 1) outcome.falsified.push_back({0, step});
    return outcome;
  }
}

TEST(ExhaustiveScheduler, Covers_a_cycle_and_does_not_invent_a_count) {
  ExhaustiveScheduler exhaustive;
  const ExploreResult result = explore(world_with_a_cycle, exhaustive, {.executions = 1000});
  EXPECT_EQ(result.end, ExploreEnd::exhausted);
  EXPECT_EQ(result.progress.scheduler.states, 2u);
  EXPECT_FALSE(result.progress.scheduler.complete_orders);
  EXPECT_EQ(result.findings.size(), 1u);
}

TEST(ExhaustiveScheduler, Does_not_count_orders_when_a_budget_cut_it_short) {
  ExhaustiveScheduler exhaustive;
  const auto result = explore(MonitoredPoset{antichain(8), {}}, exhaustive, {.steps = 100});
  EXPECT_EQ(result.end, ExploreEnd::budget);
  EXPECT_FALSE(result.has_covered_every_order());
  EXPECT_FALSE(result.progress.scheduler.complete_orders);
}

TEST(ReplayScheduler, Repeats_what_was_recorded) {
  RandomScheduler random(3);
  RecordScheduler recorder(random);
  const MonitoredPoset world{antichain(6), {}};
  const auto order = orders_run(world, recorder, 1);
  ReplayScheduler replay(recorder.choices());
  EXPECT_EQ(orders_run(world, replay), order);
}

TEST(ReplayScheduler, Refuses_a_schedule_that_does_not_fit) {
  struct Case {
    Choices choices;
    std::string_view text;
  };
  const Case cases[] = {
      {{0, 2}, "choice 2 of the schedule is 2, but 'toy.ready' has 2 options there: e1, e2"},
      {{0}, "the schedule has 1 choices, but 'toy.ready' asks for another one: e1, e2"},
      {{0, 0, 0}, "the execution ended after 2 choices, but the schedule has 3"},
  };
  for (const Case& bad : cases) {
    ReplayScheduler replay(bad.choices);
    const auto result = explore(MonitoredPoset{antichain(3), {}}, replay, {});
    EXPECT_EQ(result.end, ExploreEnd::diverged);
    EXPECT_EQ(result.divergence, bad.text);
    EXPECT_EQ(result.complete_executions, 0u);
  }
}

TEST(ReplayScheduler, Lenient_takes_the_first_option_where_the_schedule_has_none) {
  ReplayScheduler replay({2, 7, 1, 1}, ReplayFit::lenient);
  EXPECT_EQ(orders_run(MonitoredPoset{antichain(3), {}}, replay),
            std::vector<std::string>{"2 0 1"});
}

TEST(TwiceScheduler, Agrees_with_a_deterministic_world) {
  ExhaustiveScheduler exhaustive;
  TwiceScheduler twice(exhaustive);
  const auto result = explore(MonitoredPoset{antichain(5), {}, Shows::every_state}, twice, {});
  EXPECT_EQ(result.end, ExploreEnd::exhausted);
  EXPECT_EQ(result.progress.scheduler.complete_orders, OrderCount(120));
}

TEST(TwiceScheduler, Does_not_repeat_an_execution_that_was_stopped_from_outside) {
  static constexpr std::string_view kNames[] = {"a", "b"};
  FifoScheduler fifo;
  TwiceScheduler twice(fifo);
  ASSERT_TRUE(twice.new_execution());
  twice.choose({"toy.site", kNames, Fingerprint{1, 0}});
  twice.end_execution({true, {}});
  EXPECT_FALSE(twice.new_execution());  // fifo has one execution only
}

// A world whose `part` depends on how often it ran, as it would on an address or a clock.
struct Unsteady {
  enum class Part { state, options, length, final_state } part;
  int runs = 0;

  Outcome operator()(Chooser& chooser) {
    const bool differs = runs++ % 2 == 1;
    const auto is = [&](Part which) { return part == which && differs; };
    const std::string_view names[] = {"a", is(Part::options) ? "c" : "b"};
    const Fingerprint state{is(Part::state) ? 2u : 1u, 0};
    chooser.choose({"toy.unsteady", names, state});
    if (is(Part::length)) chooser.choose({"toy.unsteady", names, Fingerprint{3, 0}});
    Outcome outcome;
    outcome.final_state = Fingerprint{is(Part::final_state) ? 5u : 4u, 0};
    return outcome;
  }
};

TEST(TwiceScheduler, Detects_each_kind_of_nondeterminism) {
  for (const auto part : {Unsteady::Part::state, Unsteady::Part::options, Unsteady::Part::length,
                          Unsteady::Part::final_state}) {
    RandomScheduler random(1);
    TwiceScheduler twice(random);
    const auto result = explore(Unsteady{part}, twice, {.executions = 10});
    EXPECT_EQ(result.end, ExploreEnd::diverged) << static_cast<int>(part);
    EXPECT_NE(result.divergence.find("the world is not deterministic"), std::string::npos);
    EXPECT_EQ(result.executions, 2u);
  }
}

TEST(ExhaustiveScheduler, Detects_a_world_that_changed_on_the_way_back) {
  ExhaustiveScheduler exhaustive;
  const auto result = explore(Unsteady{Unsteady::Part::state}, exhaustive, {});
  EXPECT_EQ(result.end, ExploreEnd::diverged);
  EXPECT_NE(result.divergence.find("'toy.unsteady'"), std::string::npos);
}

// n tasks of two steps each, of which only the order in which all `depth` constraints hold fails:
// the last task ends first, and then each before it.
bool runs_in_reverse(Scheduler& scheduler, std::size_t tasks) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tasks; ++i) names.push_back("t" + std::to_string(i));
  std::vector<std::size_t> open(tasks);
  for (std::size_t i = 0; i < tasks; ++i) open[i] = i;
  bool is_reverse = true;
  scheduler.new_execution();
  while (!open.empty()) {
    std::vector<std::string_view> options;
    for (const std::size_t i : open) options.push_back(names[i]);
    const std::size_t choice = scheduler.choose({"toy", options, {}});
    is_reverse = is_reverse && choice + 1 == open.size();
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(choice));
  }
  scheduler.end_execution({});
  return is_reverse;
}

TEST(PctScheduler, Hits_at_least_as_often_as_its_certificate_says) {
  for (const int depth : {1, 2, 3}) {
    PctScheduler scheduler(depth, 20261120);
    int hits = 0;
    constexpr int kRuns = 10'000;
    // One constraint a pair of neighbours: with three tasks, depth 2.
    const std::size_t tasks = static_cast<std::size_t>(depth) + 1;
    for (int run = 0; run < kRuns; ++run) hits += runs_in_reverse(scheduler, tasks) ? 1 : 0;
    const PctCertificate certificate = scheduler.certificate();
    EXPECT_EQ(certificate.tasks, tasks);
    // The chance of this toy is the bound itself: four deviations are allowed for.
    const double promised = kRuns * certificate.hit_chance();
    EXPECT_GE(hits, promised - 4.0 * std::sqrt(promised)) << "depth " << depth;
    EXPECT_LT(certificate.miss_chance(), 1e-6);
  }
}

TEST(MakeScheduler, Knows_its_names) {
  for (const std::string_view spec : {"fifo", "random", "exhaustive", "pct:3"}) {
    EXPECT_TRUE(make_scheduler(spec, 1)) << spec;
  }
  for (const std::string_view spec : {"pct:0", "pct:", "pct:x", "dpor"})
    EXPECT_EQ(make_scheduler(spec, 1).error().code, ErrorCode::usage) << spec;
  EXPECT_EQ(make_scheduler("dfs", 1).error().code, ErrorCode::usage);
  EXPECT_EQ(make_scheduler("replay:/nowhere.zps", 1).error().code, ErrorCode::unreadable);
}

// --- the state at a choice ---------------------------------------------------------------------

struct CountingWorld {
  Fingerprint fingerprint() const {
    ++asked;
    return {asked, 0};
  }
  mutable std::uint64_t asked = 0;
};

TEST(StateSource, Is_taken_only_by_those_who_ask) {
  const CountingWorld world;
  const std::vector<std::string_view> names = {"left", "right"};
  FifoScheduler fifo;
  RandomScheduler random(1);
  for (Scheduler* scheduler : std::vector<Scheduler*>{&fifo, &random}) {
    ASSERT_TRUE(scheduler->new_execution());
    scheduler->choose({"toy.site", names, StateSource::of(world)});
  }
  EXPECT_EQ(world.asked, 0U);
  ExhaustiveScheduler exhaustive;
  ASSERT_TRUE(exhaustive.new_execution());
  exhaustive.choose({"toy.site", names, StateSource::of(world)});
  EXPECT_EQ(world.asked, 1U);
  EXPECT_EQ(Fingerprint(StateSource(Fingerprint{3, 4})), (Fingerprint{3, 4}));
}

}  // namespace
}  // namespace zeroproof
