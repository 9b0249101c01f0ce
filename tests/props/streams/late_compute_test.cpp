// A compute stream that lags its host: what goes wrong then and only then, and the same
// programs repaired. Memory is poisoned in the order of the compute stream, as on a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "props/stream_properties.h"
#include "sim/schedulers/random.h"
#include "sim/world/sim_world.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {
namespace {

constexpr int kLateOrders = 60;
constexpr DType kLateFloat = DType::float32;

using Program = std::vector<double> (*)(Runtime& runtime, bool is_repaired);

// In how many orders some rank read something else, and whether the vector clocks saw why.
struct Seen {
  int wrong = 0;
  int judged = 0;
};

Seen run(Program program, bool is_repaired, const std::vector<double>& expected,
         const SimWorldOptions& given) {
  Seen seen;
  RandomScheduler scheduler(5);
  for (int order = 0; order < kLateOrders; ++order) {
    scheduler.new_execution();
    std::vector<StreamOrderCheck> checks(2);
    SimWorldOptions options = given;
    options.world_size = 2;
    options.observers = {{.accesses = &checks[0]}, {.accesses = &checks[1]}};
    options.preemption = Preemption::at_every_call;
    bool is_wrong = false;
    {
      SimWorld world(options, scheduler);
      world.run([&](Runtime& runtime) { is_wrong |= program(runtime, is_repaired) != expected; });
      EXPECT_TRUE(world.findings().empty());
    }
    scheduler.end_execution({});
    seen.wrong += is_wrong ? 1 : 0;
    bool is_judged = false;
    for (StreamOrderCheck& check : checks) {
      check.finish();
      for (const Verdict& verdict : check.verdicts()) is_judged |= !verdict.findings.empty();
    }
    seen.judged += is_judged ? 1 : 0;
  }
  return seen;
}

// A gather is the first to use memory, on a stream of its own.
std::vector<double> gather_first(Runtime& runtime, bool) {
  const Tensor own = Tensor::full({2}, 1.0 + runtime.rank(), kLateFloat);
  const Tensor all = runtime.memory().allocate(4, kLateFloat);
  Stream& gathers = runtime.stream(StreamRole::all_gather);
  Stream& compute = runtime.stream(StreamRole::compute);
  ProcessGroup& ranks = runtime.group(GroupKind::data);
  ranks.wait(ranks.all_gather(gathers, Span::of(all), Span::of(own)), compute);
  return runtime.kernels().read(compute, Span::of(all));
}

// llm.c: the update writes this rank's shard on the compute stream, the gather does not wait.
std::vector<double> gather_behind_update(Runtime& runtime, bool is_repaired) {
  Kernels& kernels = runtime.kernels();
  Stream& compute = runtime.stream(StreamRole::compute);
  Stream& gathers = runtime.stream(StreamRole::all_gather);
  const Tensor weights = runtime.memory().allocate(4, kLateFloat);
  kernels.fill(compute, Span::of(weights), 0.0);
  gathers.wait(compute);
  const Span own = Span::of(weights, 2 * runtime.rank(), 2);
  kernels.fill(compute, own, 5.0);
  if (is_repaired) gathers.wait(compute);
  ProcessGroup& ranks = runtime.group(GroupKind::data);
  ranks.wait(ranks.all_gather(gathers, Span::of(weights), own), compute);
  return kernels.read(compute, Span::of(weights));
}

// The model's arithmetic stands in line on the compute stream, and so does who looks at a tensor.
std::vector<double> computes_behind_kernels(Runtime& runtime, bool) {
  const Tensor x = runtime.memory().allocate(2, kLateFloat);
  Stream& compute = runtime.stream(StreamRole::compute);
  runtime.kernels().fill(compute, Span::of(x), 3.0);
  const Tensor y = runtime.ops().binary(BinaryOp::mul, x, x);
  runtime.kernels().scale(compute, Span::of(y), 2.0);
  runtime.kernels().add(compute, Span::of(y), Span::of(x));
  std::vector<double> values = y.values();
  values.push_back(x.values()[0]);
  return values;
}

TEST(LateCompute, Meets_poison_behind_the_first_use_and_nothing_else_does) {
  const std::vector<double> expected{1.0, 1.0, 2.0, 2.0};
  for (const bool is_late : {false, true})
    for (const bool waits : {false, true}) {
      const Seen seen = run(gather_first, true, expected,
                            {.has_late_compute = is_late, .waits_before_first_use = waits});
      EXPECT_EQ(seen.judged, 0) << is_late << waits;
      EXPECT_EQ(seen.wrong > 0, is_late && !waits) << is_late << waits << ": " << seen.wrong;
    }
}

TEST(LateCompute, Shows_a_missing_edge_in_the_numbers) {
  const std::vector<double> expected(4, 5.0);
  for (const bool is_late : {false, true})
    for (const bool is_repaired : {false, true}) {
      const Seen seen =
          run(gather_behind_update, is_repaired, expected, {.has_late_compute = is_late});
      EXPECT_EQ(seen.wrong > 0, is_late && !is_repaired) << is_late << is_repaired;
      EXPECT_EQ(seen.judged, is_repaired ? 0 : kLateOrders)
          << "vector clocks see it in every order";
    }
}

TEST(LateCompute, Is_waited_for_by_whoever_computes_or_looks) {
  for (const bool is_late : {false, true})
    EXPECT_EQ(
        run(computes_behind_kernels, true, {21.0, 21.0, 3.0}, {.has_late_compute = is_late}).wrong,
        0);
}

// Memory goes back in the order of the compute stream: freeing what it still works on is right.
TEST(LateCompute, Keeps_the_memory_that_it_works_on) {
  const Program program = [](Runtime& runtime, bool) {
    const Tensor target = runtime.memory().allocate(2, kLateFloat);
    Tensor source = runtime.memory().allocate(2, kLateFloat);
    Stream& compute = runtime.stream(StreamRole::compute);
    runtime.kernels().fill(compute, Span::of(source), 4.0);
    runtime.kernels().copy(compute, Span::of(target), Span::of(source));
    source = Tensor();
    return runtime.kernels().read(compute, Span::of(target));
  };
  const Seen seen = run(program, true, {4.0, 4.0}, {.has_late_compute = true});
  EXPECT_EQ(seen.wrong + seen.judged, 0);
}

}  // namespace
}  // namespace zeroproof
