// Every interface of the seam, overridden in full as the simulator's and the GPU's runtimes will
// have to: a method that is added, or changes its type, breaks the build here.
#include <gtest/gtest.h>

#include <memory>

#include "model/cpu_ops.h"
#include "zeroproof/engine/runtime/runtime.h"
#include "zeroproof/internal/engine/runtime/access.h"

namespace zeroproof {
namespace {

// The tags of the two sets of stubs: each stub answers with the number of its tag.
struct Sim {
  static constexpr int kRank = 1;
};
struct Cuda {
  static constexpr int kRank = 2;
};

template <class Tag>
class ClockStub final : public Clock {
 public:
  std::int64_t now_ns() const override { return Tag::kRank; }
};

template <class Tag>
class StreamStub final : public Stream {
 public:
  using Stream::synchronize;
  using Stream::wait;
  StreamId id() const override { return StreamId{Tag::kRank}; }
  StreamEvent record() override { return {}; }
  void wait(StreamEvent) override {}
  bool query(StreamEvent) override { return true; }
  void synchronize(StreamEvent) override {}
  void record_use(const Tensor&) override {}
};

template <class Tag>
class MemoryStub final : public Memory {
 public:
  Tensor allocate(std::int64_t, DType, Placement) override { return {}; }
  MemoryStats stats(Placement) const override { return {}; }
  void reset_peak() override {}
};

template <class Tag>
class KernelsStub final : public Kernels {
 public:
  void fill(Stream&, const Span&, double) override {}
  void copy(Stream&, const Span&, const Span&, double) override {}
  void add(Stream&, const Span&, const Span&, double) override {}
  void scale(Stream&, const Span&, double) override {}
  void divide(Stream&, const Span&, double) override {}
  void add_squares(Stream&, const Span&, const Span&) override {}
  void count_non_finite(Stream&, const Span&, const Span&) override {}
  void adam(Stream&, const AdamUpdate&) override {}
  void sgd(Stream&, const SgdUpdate&) override {}
  void clip_factor(Stream&, const Span&, const Span&, const ClipRule&) override {}
  void scale_by(Stream&, const Span&, const Span&) override {}
  std::vector<double> read(Stream&, const Span&) override { return {}; }
  void write(Stream&, const Span&, const std::vector<double>&) override {}
};

template <class Tag>
class ProcessGroupStub final : public ProcessGroup {
 public:
  GroupKind kind() const override { return GroupKind::data; }
  int rank() const override { return Tag::kRank; }
  int size() const override { return 1; }
  const std::vector<int>& ranks() const override { return ranks_; }
  Work all_reduce(Stream&, Span, ReduceOp) override { return {}; }
  Work reduce(Stream&, Span, int, ReduceOp) override { return {}; }
  Work reduce_scatter(Stream&, Span, Span, ReduceOp) override { return {}; }
  Work all_gather(Stream&, Span, Span) override { return {}; }
  Work broadcast(Stream&, Span, int) override { return {}; }
  Work barrier(Stream&) override { return {}; }
  bool compares_contents() const override { return false; }
  void announce(std::span<const ContentPart>) override {}
  void begin_batch() override {}
  void end_batch() override {}
  void wait(Work, Stream&) override {}
  bool is_completed(Work) override { return true; }
  void abort(const std::string&) override {}

 private:
  std::vector<int> ranks_ = {Tag::kRank};
};

template <class Tag>
class RuntimeStub final : public Runtime {
 public:
  int rank() const override { return Tag::kRank; }
  int world_size() const override { return 1; }
  Device device() const override { return {}; }
  Clock& clock() override { return clock_; }
  Memory& memory() override { return memory_; }
  Kernels& kernels() override { return kernels_; }
  const Ops& ops() const override { return ops_; }
  Stream& stream(StreamRole) override { return stream_; }
  Stream& user_stream(StreamIndex) override { return stream_; }
  ProcessGroup& group(GroupKind) override { return group_; }
  GraphCapture* graphs() override { return nullptr; }
  std::optional<std::string> poll_error() override { return std::nullopt; }
  Journal* journal() override { return nullptr; }
  FaultPoint* faults() override { return nullptr; }

 private:
  ClockStub<Tag> clock_;
  MemoryStub<Tag> memory_;
  KernelsStub<Tag> kernels_;
  CpuOps ops_;
  StreamStub<Tag> stream_;
  ProcessGroupStub<Tag> group_;
};

using SimRuntimeStub = RuntimeStub<Sim>;
using CudaRuntimeStub = RuntimeStub<Cuda>;

class AccessObserverStub final : public AccessObserver {
 public:
  void on_access(const Access&) override {}
  void on_record(StreamId, StreamEvent) override {}
  void on_wait(StreamId, StreamEvent) override {}
  void on_host_wait(StreamEvent) override {}
  void on_record_use(StreamId, const TensorImpl&) override {}
  void on_free(const Storage&) override {}
};

class FaultPointStub final : public FaultPoint {
 public:
  void reach(EventKind, NameId) override {}
};

void expect_rank(Runtime& runtime, int rank) {
  EXPECT_EQ(rank, runtime.rank());
  EXPECT_EQ(rank, runtime.clock().now_ns());
  EXPECT_EQ(StreamId{rank}, runtime.stream(StreamRole::compute).id());
  EXPECT_EQ(rank, runtime.group(GroupKind::data).rank());
}

TEST(SeamStubs, Implement_every_interface_for_the_simulator_and_for_CUDA) {
  SimRuntimeStub sim;
  CudaRuntimeStub cuda;
  expect_rank(sim, 1);
  expect_rank(cuda, 2);
  const std::unique_ptr<AccessObserver> observer = std::make_unique<AccessObserverStub>();
  const std::unique_ptr<FaultPoint> faults = std::make_unique<FaultPointStub>();
  EXPECT_TRUE(observer && faults);
}

}  // namespace
}  // namespace zeroproof
