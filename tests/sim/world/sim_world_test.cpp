#include "sim/world/sim_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/explorer.h"
#include "sim/schedulers/exhaustive.h"
#include "sim/schedulers/random.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using sim::FindingKind;

Tensor filled(Runtime& runtime, double value, std::int64_t elements = 4) {
  const Tensor tensor = runtime.memory().allocate(elements, DType::float32);
  runtime.kernels().fill(runtime.stream(StreamRole::compute), Span::of(tensor), value);
  return tensor;
}

double first(Runtime& runtime, const Tensor& tensor) {
  return runtime.kernels().read(runtime.stream(StreamRole::compute), Span::of(tensor, 0, 1))[0];
}

// Reduces on a stream of its own; `waits` is the edge that a correct program has.
double reduced(Runtime& runtime, bool waits) {
  const Tensor data = filled(runtime, runtime.rank() + 1.0);
  Stream& compute = runtime.stream(StreamRole::compute);
  Stream& reduction = runtime.stream(StreamRole::reduction);
  reduction.wait(compute);
  ProcessGroup& group = runtime.group(GroupKind::data);
  const Work work = group.all_reduce(reduction, Span::of(data), ReduceOp::sum);
  if (waits) group.wait(work, compute);
  const double result = first(runtime, data);
  reduction.synchronize();
  return result;
}

// All results of the program over every order that the scheduler finds.
struct Results {
  std::set<std::vector<double>> values;
  std::set<std::string> findings;
  std::uint64_t executions = 0;
};

template <class Program>
Results over_all_orders(int world_size, Program program,
                        Preemption preemption = Preemption::at_every_call) {
  Results results;
  ExhaustiveScheduler scheduler;
  const auto run = [&](Chooser& chooser) {
    SimWorld world({.world_size = world_size, .preemption = preemption}, chooser);
    std::vector<double> values(static_cast<std::size_t>(world_size));
    world.try_run([&](Runtime& runtime) {
      values[static_cast<std::size_t>(runtime.rank())] = program(runtime);
    });
    results.values.insert(values);
    for (const sim::Finding& finding : world.findings()) results.findings.insert(finding.text);
    return Outcome{};
  };
  results.executions = explore(run, scheduler, {}).executions;
  return results;
}

// A program that ends after its last call leaves no other trace: a state of its own all the same.
TEST(SimWorld, The_end_of_a_program_meets_the_others_wherever_they_are) {
  const Results results = over_all_orders(3, [](Runtime& runtime) {
    double calls = 0;
    try {
      for (int i = 0; i < 2; ++i) {
        runtime.stream(StreamRole::compute).record();
        if (runtime.rank() == 0) throw std::runtime_error("the program of rank 0 ends");
        ++calls;
      }
    } catch (const RuntimeFault&) {
    }
    return calls;
  });
  std::set<std::vector<double>> all;
  for (const double one : {0.0, 1.0, 2.0})
    for (const double other : {0.0, 1.0, 2.0}) all.insert({0.0, one, other});
  EXPECT_EQ(results.values, all);
}

TEST(SimWorld, A_program_that_waits_has_one_result_in_every_order) {
  const Results results =
      over_all_orders(2, [](Runtime& runtime) { return reduced(runtime, true); });
  EXPECT_EQ(results.values, (std::set<std::vector<double>>{{3.0, 3.0}}));
  EXPECT_TRUE(results.findings.empty());
  EXPECT_GT(results.executions, 10U);
}

TEST(SimWorld, A_missing_wait_shows_in_some_order) {
  const Results results =
      over_all_orders(2, [](Runtime& runtime) { return reduced(runtime, false); });
  EXPECT_TRUE(results.values.contains({3.0, 3.0}));
  EXPECT_TRUE(results.values.contains({1.0, 3.0}) || results.values.contains({1.0, 2.0}));
}

TEST(SimWorld, Differing_collectives_fail_on_every_rank_with_both_calls_named) {
  FirstChooser chooser;
  SimWorld world({.world_size = 2}, chooser);
  const auto errors = world.try_run([](Runtime& runtime) {
    const Tensor data = filled(runtime, 1.0, runtime.rank() == 0 ? 4 : 6);
    runtime.group(GroupKind::data)
        .all_reduce(runtime.stream(StreamRole::compute), Span::of(data), ReduceOp::sum);
  });
  for (const std::exception_ptr& error : errors)
    EXPECT_THROW(std::rethrow_exception(error), RuntimeFault);
  ASSERT_EQ(world.findings().size(), 1U);
  EXPECT_EQ(world.findings()[0].kind, FindingKind::collective_mismatch);
  EXPECT_EQ(world.findings()[0].text,
            "data group [0, 1], collective 0: rank 0 of the group issued all_reduce(sum) of 4 "
            "float32, but rank 1 of the group issued all_reduce(sum) of 6 float32");
}

TEST(SimWorld, A_rank_that_does_not_come_is_a_deadlock_that_names_it) {
  FirstChooser chooser;
  SimWorld world({.world_size = 3}, chooser);
  const auto errors = world.try_run([](Runtime& runtime) {
    if (runtime.rank() != 1)
      runtime.group(GroupKind::data).barrier(runtime.stream(StreamRole::compute));
  });
  EXPECT_TRUE(errors[0] && !errors[1] && errors[2]);
  ASSERT_EQ(world.findings().size(), 1U);
  EXPECT_EQ(world.findings()[0].kind, FindingKind::deadlock);
  EXPECT_EQ(world.findings()[0].text,
            "deadlock: rank 0 waits for data group [0, 1, 2], collective 0 (barrier), where rank "
            "1 did not come; rank 1 has ended; rank 2 waits for data group [0, 1, 2], collective 0 "
            "(barrier), where rank 1 did not come");
}

TEST(SimWorld, Two_groups_in_opposite_orders_are_a_cycle) {
  FirstChooser chooser;
  SimWorld world({.world_size = 2, .degrees = {.sequence = 2}}, chooser);
  world.try_run([](Runtime& runtime) {
    Stream& stream = runtime.stream(StreamRole::compute);
    const bool is_first = runtime.rank() == 0;
    runtime.group(is_first ? GroupKind::data : GroupKind::sequence).barrier(stream);
    runtime.group(is_first ? GroupKind::sequence : GroupKind::data).barrier(stream);
  });
  ASSERT_EQ(world.findings().size(), 1U);
  EXPECT_TRUE(world.findings()[0].text.ends_with("; cycle: rank 0 -> rank 1 -> rank 0"))
      << world.findings()[0].text;
}

TEST(SimWorld, Memory_freed_before_its_work_ran_is_found) {
  const auto program = [](bool is_recorded) {
    return [is_recorded](Runtime& runtime) {
      Tensor target = filled(runtime, 0.0);
      Tensor source = filled(runtime, 2.0);
      Stream& offload = runtime.stream(StreamRole::offload);
      offload.wait(runtime.stream(StreamRole::compute));
      runtime.kernels().copy(offload, Span::of(target), Span::of(source));
      if (is_recorded) offload.record_use(source);
      source = Tensor();
      offload.synchronize();
      return first(runtime, target);
    };
  };
  EXPECT_EQ(over_all_orders(1, program(false)).findings.size(), 1U);
  const Results recorded = over_all_orders(1, program(true));
  EXPECT_TRUE(recorded.findings.empty());
  EXPECT_EQ(recorded.values, (std::set<std::vector<double>>{{2.0}}));
}

TEST(SimWorld, A_rank_that_throws_aborts_the_others) {
  FirstChooser chooser;
  SimWorld world({.world_size = 2}, chooser);
  EXPECT_THROW(world.run([](Runtime& runtime) {
    if (runtime.rank() == 1) throw std::runtime_error("own");
    runtime.group(GroupKind::data).barrier(runtime.stream(StreamRole::compute));
  }),
               std::runtime_error);
  EXPECT_TRUE(world.findings().empty());
}

TEST(SimWorld, A_loop_without_end_is_no_progress) {
  FirstChooser chooser;
  SimWorld world({.preemption = Preemption::at_every_call, .steps_max = 1000}, chooser);
  world.try_run([](Runtime& runtime) {
    Stream& reduction = runtime.stream(StreamRole::reduction);
    while (true) reduction.query(reduction.record());
  });
  ASSERT_EQ(world.findings().size(), 1U);
  EXPECT_EQ(world.findings()[0].kind, FindingKind::no_progress);
}

TEST(SimWorld, Exceptions_of_ranks_in_turns_do_not_mix) {
  RandomScheduler scheduler(7);
  for (int execution = 0; execution < 50; ++execution) {
    scheduler.new_execution();
    SimWorld world({.world_size = 3, .preemption = Preemption::at_every_call}, scheduler);
    std::vector<std::string> caught(3);
    world.run([&](Runtime& runtime) {
      const std::string own = std::to_string(runtime.rank());
      try {
        try {
          throw std::runtime_error(own);
        } catch (...) {
          runtime.stream(StreamRole::reduction).record();  // others throw and catch meanwhile
          runtime.stream(StreamRole::reduction).record();
          throw;
        }
      } catch (const std::exception& error) {
        caught[static_cast<std::size_t>(runtime.rank())] = error.what();
      }
    });
    scheduler.end_execution({});
    EXPECT_EQ(caught, (std::vector<std::string>{"0", "1", "2"}));
  }
}

}  // namespace
}  // namespace zeroproof
