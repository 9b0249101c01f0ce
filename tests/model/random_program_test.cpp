// Random programs in exact arithmetic: every legal order against the counted ones, the faithful
// order against a plain simulation of the queue rules, all gradients against plain arithmetic.
#include "tests/model/random_program.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "model/linear_extensions.h"
#include "sim/explorer.h"
#include "sim/schedulers/exhaustive.h"
#include "tests/model/pick.h"
#include "tests/model/slow_engine.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using testing::pick;
using testing::Program;
using testing::ProgramRun;
using testing::ProgramSize;
using testing::random_program;
using testing::SlowStep;
using testing::SlowTask;
using testing::TaskRecord;

OrderCount orders_of(const std::vector<TaskRecord>& tasks) {
  OrderCount count(1);
  std::vector<NodeId> ids;
  for (const TaskRecord& task : tasks)
    count *= count_orders(testing::poset_of(task.graph, ids)).value();
  return count;
}

bool is_at_most(const OrderCount& count, std::uint64_t most) {
  return !count.has_overflowed() && std::stoull(count.text()) <= most;
}

bool fits(const std::vector<TaskRecord>& tasks) {
  return std::all_of(tasks.begin(), tasks.end(), [](const TaskRecord& task) {
    return testing::nodes_reached(task.graph).size() <= Poset::kMaxElements;
  });
}

// A program whose orders can all be run: the last step goes, and again, until they are few.
Program program_of_few_orders(const ProgramSize& size) {
  constexpr std::uint64_t kMost = 1500;
  for (ProgramSize smaller = size;; --smaller.steps_max) {
    const Program program = random_program(smaller);
    ProgramRun run(program);
    run.run_backwards();
    const auto& tasks = run.recorder().tasks();
    if (fits(tasks) && is_at_most(orders_of(tasks), kMost)) return program;
    if (smaller.steps_max == 1) smaller = size;
  }
}

// What runs, one after another: the order that the recorded tasks predict.
std::vector<SlowStep> predicted_steps(const std::vector<TaskRecord>& tasks) {
  std::vector<SlowStep> steps;
  std::vector<SlowTask> slow;
  for (const TaskRecord& task : tasks) slow.push_back({task.graph, task.starts});
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].is_nested) continue;
    for (const SlowStep& step : testing::run_slowly(slow, i)) steps.push_back(step);
  }
  return steps;
}

// Then every node that is taken from the queue runs, and orders differ in what runs.
bool has_no_inputs(const Program& program) {
  return std::all_of(program.backwards.begin(), program.backwards.end(),
                     [](const auto& spec) { return spec.inputs.empty(); });
}

void check_every_order(const Program& program) {
  ProgramRun faithful(program);
  faithful.run_backwards();
  std::set<std::vector<SlowStep>> orders;
  std::uint64_t different = 0;
  const RunFunction run = [&](Chooser& chooser) {
    ProgramRun one(program, &chooser);
    one.run_backwards();
    orders.insert(one.recorder().steps());
    if (one.results() != faithful.results()) ++different;
    return Outcome{};
  };
  ExhaustiveScheduler scheduler(Pruning::off);
  const ExploreResult explored = explore(run, scheduler, {});
  const OrderCount expected = orders_of(faithful.recorder().tasks());
  RC_ASSERT(explored.has_covered_every_order());
  RC_ASSERT(different == 0U);
  RC_ASSERT(OrderCount(explored.complete_executions) == expected);
  if (has_no_inputs(program)) RC_ASSERT(OrderCount(orders.size()) == expected);
  RC_ASSERT(orders.contains(faithful.recorder().steps()));
  RC_CLASSIFY(explored.complete_executions > 1U, "several orders");
}

RC_GTEST_PROP(RandomProgram, Has_the_same_gradients_in_every_order_and_as_many_orders_as_counted,
              ()) {
  check_every_order(program_of_few_orders({4, 8, 2, 0}));
}

RC_GTEST_PROP(RandomProgram, Has_the_same_gradients_in_every_order_with_nested_backwards, ()) {
  check_every_order(program_of_few_orders({3, 6, 1, 1}));
}

RC_GTEST_PROP(RandomProgram, Runs_in_the_order_of_the_slow_engine, ()) {
  const Program program = random_program({9, 40, 3, 0});
  ProgramRun run(program);
  run.run_backwards();
  RC_ASSERT(run.recorder().steps() == predicted_steps(run.recorder().tasks()));
}

RC_GTEST_PROP(RandomProgram, Runs_nested_backwards_in_the_merged_order_of_the_slow_engine, ()) {
  const Program program = random_program({6, 12, 2, 3});
  ProgramRun run(program);
  run.run_backwards();
  RC_CLASSIFY(run.recorder().tasks().size() > program.backwards.size(), "nested");
  RC_ASSERT(run.recorder().steps() == predicted_steps(run.recorder().tasks()));
}

RC_GTEST_PROP(RandomProgram, Has_the_gradients_of_plain_arithmetic, ()) {
  const Program program = random_program({6, 25, 3, 0});
  const auto expected = reference_gradients(program);
  ProgramRun run(program);
  run.run_backwards();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto actual = run.results()[i].value_or(std::vector<double>(2, 0.0));
    RC_ASSERT(actual == expected[i]);
  }
}

// Up to 40 leaves become ready in one delivery, with what a hook starts in between.
RC_GTEST_PROP(RandomProgram, Takes_many_ready_leaves_in_the_order_of_the_slow_engine, ()) {
  const CpuOps ops;
  testing::TaskRecorder recorder;
  Autograd ag(ops, &recorder);
  recorder.attach(ag);
  TensorList leaves;
  for (int i = pick(2, 41); i > 0; --i) {
    leaves.push_back(Tensor::full({2}, i));
    leaves.back().set_requires_grad(true);
  }
  const auto some_leaves = [&] {
    TensorList some;
    for (int i = pick(1, 41); i > 0; --i)
      some.push_back(leaves[pick<std::size_t>(0, leaves.size())]);
    return some;
  };
  const Tensor nested = sum(ag, cat(ag, some_leaves()));
  const Tensor starter = leaves[pick<std::size_t>(0, leaves.size())];
  starter.register_hook([&](const Tensor&) {
    if (recorder.level() == 0) {
      recorder.start_from(starter);
      ag.backward(nested, {.retain_graph = true});
    }
    return Tensor();
  });
  ag.backward(add(ag, sum(ag, cat(ag, leaves)), sum(ag, cat(ag, some_leaves()))));
  RC_ASSERT(recorder.tasks().size() == 2U);
  RC_ASSERT(recorder.steps() == predicted_steps(recorder.tasks()));
}

}  // namespace
}  // namespace zeroproof
