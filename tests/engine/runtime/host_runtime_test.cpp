// What one rank of a world has besides kernels and groups: memory, streams, those who look on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/check.h"
#include "tests/engine/heap_count.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::int64_t live(Runtime& runtime, Placement placement = Placement::device) {
  return runtime.memory().stats(placement).live_bytes;
}

TEST(HostMemory, Counts_bytes_as_a_real_device_until_the_last_tensor_is_gone) {
  HostWorld world({});
  Runtime& runtime = world.runtime(0);
  {
    const Tensor half = runtime.memory().allocate(10, DType::bfloat16);
    EXPECT_EQ(20, live(runtime));
    Tensor view;
    {
      const Tensor wide = runtime.memory().allocate(10, DType::float64);
      EXPECT_EQ(100, live(runtime));
      view = wide.as_strided({1}, {1}, 3);
    }
    EXPECT_EQ(100, live(runtime));
  }
  const MemoryStats stats = runtime.memory().stats(Placement::device);
  EXPECT_EQ(0, stats.live_bytes);
  EXPECT_EQ(100, stats.peak_bytes);
  EXPECT_EQ(2, stats.allocations);
}

TEST(HostMemory, Counts_device_and_host_apart) {
  HostWorld world({.device = Device::cuda(0)});
  Runtime& runtime = world.runtime(0);
  const Tensor offloaded = runtime.memory().allocate(4, DType::float32, Placement::host);
  const Tensor resident = runtime.memory().allocate(1, DType::float32);
  EXPECT_EQ(16, live(runtime, Placement::host));
  EXPECT_EQ(4, live(runtime));
  EXPECT_EQ(Device::cpu(), offloaded.device());
  EXPECT_EQ(Device::cuda(0), resident.device());
  EXPECT_EQ(Device::cuda(0), runtime.device());
}

TEST(HostMemory, Resets_its_peak_to_what_is_live) {
  HostWorld world({});
  Runtime& runtime = world.runtime(0);
  const Tensor kept = runtime.memory().allocate(1, DType::float32);
  runtime.memory().allocate(100, DType::float32);
  runtime.memory().reset_peak();
  EXPECT_EQ(4, runtime.memory().stats(Placement::device).peak_bytes);
}

TEST(HostMemory, Refuses_what_does_not_fit_any_more) {
  HostWorld world({.capacity_bytes = 16});
  Runtime& runtime = world.runtime(0);
  {
    const Tensor kept = runtime.memory().allocate(3, DType::float32);
    EXPECT_THROW(runtime.memory().allocate(2, DType::float32), RuntimeFault);
    const Tensor rest = runtime.memory().allocate(2, DType::float16);
    EXPECT_EQ(16, live(runtime));
  }
  EXPECT_EQ(16, runtime.memory().allocate(4, DType::float32).numel() * 4);
}

TEST(HostMemory, Shows_that_new_memory_is_garbage) {
  HostWorld poisoned({});
  for (const double value : poisoned.runtime(0).memory().allocate(3, DType::float32).values())
    EXPECT_TRUE(std::isnan(value));
  HostWorld clean({.is_poisoned = false});
  EXPECT_THAT(clean.runtime(0).memory().allocate(3, DType::float32).values(), Each(0.0));
}

TEST(HostMemory, May_end_before_its_tensors) {
  Tensor survivor;
  {
    HostWorld world({.world_size = 2});
    world.run([&](Runtime& runtime) {
      if (runtime.rank() == 1) survivor = runtime.memory().allocate(5, DType::float32);
    });
    EXPECT_EQ(20, live(world.runtime(1)));
  }
  EXPECT_EQ(5, survivor.numel());
}

TEST(HostStreams, Are_one_for_each_role_and_compute_is_the_users_first) {
  HostWorld world({});
  Runtime& runtime = world.runtime(0);
  std::vector<std::int32_t> ids;
  for (const StreamRole role :
       {StreamRole::compute, StreamRole::reduction, StreamRole::all_gather, StreamRole::offload})
    ids.push_back(runtime.stream(role).id().value);
  for (const StreamIndex index : {0, 1, 2}) ids.push_back(runtime.user_stream(index).id().value);
  EXPECT_THAT(ids, ElementsAre(0, 1, 2, 3, 0, 4, 5));
  EXPECT_EQ(&runtime.user_stream(2), &runtime.user_stream(2));
  EXPECT_THROW(runtime.user_stream(-1), CheckFailed);
}

TEST(HostStreams, Have_run_what_they_were_given) {
  HostWorld world({});
  Stream& stream = world.runtime(0).stream(StreamRole::compute);
  const StreamEvent event = stream.record();
  EXPECT_TRUE(stream.query(event));
  stream.synchronize();
  EXPECT_NE(event, stream.record());
  EXPECT_THROW(stream.wait(StreamEvent{99}), CheckFailed);
  EXPECT_THROW(stream.synchronize(StreamEvent{}), CheckFailed);
}

// Writes down each call as one text.
class AccessList final : public AccessObserver {
 public:
  void on_access(const Access& access) override {
    note(access.is_write ? "write" : "read", access.stream, access.span.begin,
         access.span.elements);
  }
  void on_record(StreamId stream, StreamEvent event) override {
    note("record", stream, event.value);
  }
  void on_wait(StreamId stream, StreamEvent event) override { note("wait", stream, event.value); }
  void on_host_wait(StreamEvent event) override {
    heard_.push_back("host " + std::to_string(event.value));
  }
  void on_record_use(StreamId, const TensorImpl&) override {}
  void on_free(const Storage&) override {}
  std::vector<std::string> take() { return std::exchange(heard_, {}); }

 private:
  template <class... Numbers>
  void note(const char* what, StreamId stream, Numbers... numbers) {
    std::string text = what + (" " + std::to_string(stream.value));
    ((text += " " + std::to_string(numbers)), ...);
    heard_.push_back(text);
  }

  std::vector<std::string> heard_;
};

struct Observed {
  AccessList listener;
  HostWorld world{HostWorldOptions{.observers = {{.accesses = &listener}}}};
  Runtime& runtime = world.runtime(0);
  Stream& compute = runtime.stream(StreamRole::compute);
  Stream& reduction = runtime.stream(StreamRole::reduction);
  Tensor data = runtime.memory().allocate(8, DType::float32);
};

TEST(AccessRecords, Name_what_each_kernel_reads_and_writes_on_which_stream) {
  Observed o;
  Kernels& kernels = o.runtime.kernels();
  const Span low = Span::of(o.data, 0, 4);
  const Span high = Span::of(o.data, 4, 4);
  kernels.fill(o.compute, low, 1.0);
  EXPECT_THAT(o.listener.take(), ElementsAre("write 0 0 4"));
  kernels.copy(o.reduction, high, low);
  EXPECT_THAT(o.listener.take(), ElementsAre("read 1 0 4", "write 1 4 4"));
  kernels.add_squares(o.compute, Span::of(o.data), high);
  EXPECT_THAT(o.listener.take(), ElementsAre("read 0 4 4", "write 0 0 1"));
  kernels.sgd(o.compute, {low, high, {}, 1, {}});
  EXPECT_THAT(o.listener.take(), ElementsAre("read 0 4 4", "write 0 0 4"));
  kernels.adam(o.compute, {low.part(0, 1), low.part(1, 1), low.part(2, 1), low.part(3, 1), 1, {}});
  EXPECT_THAT(o.listener.take(),
              ElementsAre("read 0 1 1", "write 0 0 1", "write 0 2 1", "write 0 3 1"));
  kernels.read(o.compute, low);
  EXPECT_THAT(o.listener.take(), ElementsAre("read 0 0 4", "record 0 0", "host 0"));
  kernels.fill(o.compute, low.part(1, 0), 1.0);
  EXPECT_THAT(o.listener.take(), IsEmpty());
}

TEST(AccessRecords, Order_a_collective_with_whoever_waits_for_it) {
  Observed o;
  ProcessGroup& group = o.runtime.group(GroupKind::data);
  const Work first = group.all_reduce(o.reduction, Span::of(o.data, 0, 4), ReduceOp::sum);
  const Work second = group.all_gather(o.reduction, Span::of(o.data, 0, 4), Span::of(o.data, 4, 4));
  EXPECT_THAT(o.listener.take(), ElementsAre("read 1 0 4", "write 1 0 4", "record 1 0",
                                             "read 1 4 4", "write 1 0 4", "record 1 1"));
  group.wait(first, o.compute);
  group.wait(second, o.compute);
  group.wait(first, o.compute);
  EXPECT_THAT(o.listener.take(), ElementsAre("wait 0 0", "wait 0 1", "wait 0 0"));
  o.compute.wait(o.reduction);
  EXPECT_THAT(o.listener.take(), ElementsAre("record 1 2", "wait 0 2"));
}

// On every hook and every bucket; see also the fixed cost of a policy.
TEST(HostRuntime, Takes_nothing_from_the_heap_for_kernels_and_waits) {
  HostWorld world({});
  Runtime& runtime = world.runtime(0);
  Kernels& kernels = runtime.kernels();
  Stream& stream = runtime.stream(StreamRole::compute);
  ProcessGroup& group = runtime.group(GroupKind::data);
  const Tensor data = runtime.memory().allocate(6, DType::bfloat16);
  const Tensor turned = Tensor::full({2, 3}, 1.0, DType::float32).as_strided({3, 2}, {1, 3}, 0);
  const auto work = [&] {
    kernels.fill(stream, Span::of(data), 1.0);
    kernels.copy(stream, Span::of(data), Span::of(turned), 0.5);
    kernels.add(stream, Span::of(turned), Span::of(data));
    kernels.adam(stream, {Span::of(data, 0, 1),
                          Span::of(data, 1, 1),
                          Span::of(data, 2, 1),
                          Span::of(data, 3, 1),
                          1,
                          {}});
    group.wait(group.all_reduce(stream, Span::of(data), ReduceOp::avg), stream);
    stream.synchronize();
  };
  work();  // the group's buffer grows once
  const std::uint64_t before = heap_allocations();
  work();
  EXPECT_EQ(before, heap_allocations());
}

}  // namespace
}  // namespace zeroproof
