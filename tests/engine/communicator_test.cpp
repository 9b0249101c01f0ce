// What a communicator remembers of collectives without a waiter.
#include "engine/zero/communicator.h"

#include <gtest/gtest.h>

#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

// With this fault point events are reported.
class Listening final : public FaultPoint {
 public:
  void reach(EventKind, NameId) override {}
};

TEST(Communicator, Remembers_no_collective_that_nobody_hears_of) {
  HostWorld({.world_size = 2}).run([](Runtime& runtime) {
    const Events events(runtime, EngineId{0});
    Communicator ranks(runtime.group(GroupKind::data), events);
    Stream& stream = runtime.stream(StreamRole::compute);
    const Tensor data = runtime.memory().allocate(3, DType::float32);
    runtime.kernels().fill(stream, Span::of(data), 1.0);
    for (int step = 0; step < 100; ++step)
      ranks.broadcast(stream, Span::of(data), 0, {.is_async = true});
    EXPECT_EQ(0U, ranks.outstanding());
  });
}

TEST(Communicator, Forgets_what_it_is_told_to) {
  Listening faults;
  HostWorld world({.world_size = 1, .observers = {{.faults = &faults}}});
  world.run([](Runtime& runtime) {
    const Events events(runtime, EngineId{0});
    Communicator ranks(runtime.group(GroupKind::data), events);
    Stream& stream = runtime.stream(StreamRole::compute);
    const Tensor data = runtime.memory().allocate(3, DType::float32);
    runtime.kernels().fill(stream, Span::of(data), 1.0);
    const Work work = ranks.broadcast(stream, Span::of(data), 0, {.is_async = true});
    EXPECT_EQ(1U, ranks.outstanding());
    ranks.forget(work);
    EXPECT_EQ(0U, ranks.outstanding());
  });
}

}  // namespace
}  // namespace zeroproof
