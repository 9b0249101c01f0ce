// What the engine announces belongs to the collective that it calls next, and to no other.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "engine/events.h"
#include "engine/zero/communicator.h"
#include "sim/schedulers/fifo.h"
#include "sim/world/sim_world.h"

namespace zeroproof {
namespace {

// The first collective of a rank fails where its event is reported.
class FirstIssueFails final : public FaultPoint {
 public:
  void reach(EventKind kind, NameId) override {
    if (kind == EventKind::coll_issue && !has_failed_) {
      has_failed_ = true;
      throw std::runtime_error("no event");
    }
  }

 private:
  bool has_failed_ = false;
};

TEST(AnnouncedContent, Goes_with_the_collective_that_was_not_issued) {
  std::vector<FirstIssueFails> faults(2);
  FifoScheduler first;
  SimWorld world({.world_size = 2, .observers = {{.faults = &faults[0]}, {.faults = &faults[1]}}},
                 first);
  world.run([](Runtime& runtime) {
    const Events events(runtime, EngineId{0});
    Communicator data(runtime.group(GroupKind::data), events);
    Stream& stream = runtime.stream(StreamRole::compute);
    const Tensor tensor = runtime.memory().allocate(4, DType::float32);
    runtime.kernels().fill(stream, Span::of(tensor), 1.0);
    const std::vector<int> own{runtime.rank()};  // each rank was about to reduce another one
    const CollectiveForm form{.contents = data.contents_of(own, [](int rank) {
      return ContentPart{rank, 0};
    })};
    EXPECT_THROW(data.all_reduce(stream, Span::of(tensor), ReduceOp::sum, form),
                 std::runtime_error);
    data.all_reduce(stream, Span::of(tensor), ReduceOp::sum, {});
    EXPECT_EQ(runtime.kernels().read(stream, Span::of(tensor)).front(), 2.0);
  });
  EXPECT_TRUE(world.findings().empty());
}

}  // namespace
}  // namespace zeroproof
