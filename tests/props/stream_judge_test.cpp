// What `--judge streams` sees: work on two streams without an order, in a run that went well.
#include "props/train/stream_judge.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/schedulers/fifo.h"
#include "sim/world/sim_world.h"

namespace zeroproof::train {
namespace {

PropertiesReport judged(bool waits) {
  StreamJudge judge(2);
  {
    FifoScheduler first;
    SimWorld world({.world_size = 2, .observers = judge.observers()}, first);
    world.run([&](Runtime& runtime) {
      Stream& compute = runtime.stream(StreamRole::compute);
      Stream& reduction = runtime.stream(StreamRole::reduction);
      const Tensor tensor = runtime.memory().allocate(4, DType::float32);
      runtime.kernels().fill(compute, Span::of(tensor), 1.0);
      if (waits || runtime.rank() == 0) reduction.wait(compute);
      runtime.kernels().scale(reduction, Span::of(tensor), 2.0);
      compute.wait(reduction);
    });
  }
  return judge.finish();
}

TEST(StreamJudge, Names_the_race_and_its_rank) {
  EXPECT_FALSE(judged(true).is_falsified());
  const PropertiesReport report = judged(false);
  ASSERT_EQ(report.falsified.size(), 1U);
  EXPECT_EQ(std::string(report.falsified.front().property->number), "P47");
  EXPECT_EQ(report.falsified.front().rank, 1);
}

}  // namespace
}  // namespace zeroproof::train
