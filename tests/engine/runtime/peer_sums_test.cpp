// Reductions by copies between GPUs: the bits of the host runtime. Skipped with fewer than two
// GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>

#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/internal/engine/runtime/graph_capture.h"
#include "zeroproof/model/nn/init.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<double>;

constexpr std::array kDTypes = {DType::float64, DType::float32, DType::bfloat16, DType::float16};
constexpr std::array kReduceOps = {ReduceOp::sum, ReduceOp::avg, ReduceOp::max};
constexpr std::int64_t kMegabyte = 1 << 20;

class CudaPeerSums : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (visible_gpus() > 1) gpus_ = Gpus::open(std::min(4, visible_gpus())).value();
  }
  static void TearDownTestSuite() { gpus_.reset(); }
  void SetUp() override {
    if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    if (visible_gpus() < 2) GTEST_SKIP() << "needs two GPUs";
  }

  // `program` gives the same on every rank of the GPUs as on the host's, with 2 to all GPUs.
  void expect_same(const std::string& what, const std::function<Values(Runtime&)>& program) {
    for (int world = 2; world <= gpus_->count(); ++world) {
      std::vector<Values> wanted(static_cast<std::size_t>(world));
      std::vector<Values> found = wanted;
      const auto into = [&](std::vector<Values>& of) {
        return [&](Runtime& runtime) {
          of[static_cast<std::size_t>(runtime.rank())] = program(runtime);
        };
      };
      HostWorld({.world_size = world}).run(into(wanted));
      CudaWorld({.world_size = world}, *gpus_).run(into(found));
      for (int rank = 0; rank < world; ++rank)
        expect_equal(wanted[static_cast<std::size_t>(rank)], found[static_cast<std::size_t>(rank)],
                     what + ", rank " + std::to_string(rank) + " of " + std::to_string(world));
    }
  }

  static void expect_equal(const Values& wanted, const Values& found, const std::string& what) {
    ASSERT_EQ(wanted.size(), found.size()) << what;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const bool is_same =
          std::isnan(wanted[i])
              ? std::isnan(found[i])
              : wanted[i] == found[i] && std::signbit(wanted[i]) == std::signbit(found[i]);
      ASSERT_TRUE(is_same) << what << ", element " << i << ": " << wanted[i] << " on the host, "
                           << found[i];
    }
  }

  static std::optional<Gpus> gpus_;
};
std::optional<Gpus> CudaPeerSums::gpus_;

// Numbers of many magnitudes, whose sums round; here and there one that is special.
Tensor rank_values(Runtime& runtime, std::int64_t elements, DType dtype, std::uint64_t seed) {
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  nn::InitStream stream(seed * 16 + static_cast<std::uint64_t>(runtime.rank()));
  Values values;
  for (std::int64_t i = 0; i < elements; ++i)
    values.push_back(std::ldexp(stream.uniform(3.0), static_cast<int>(i % 29) - 20));
  for (std::int64_t i = 7; i < elements; i += 41)
    values[static_cast<std::size_t>(i)] = runtime.rank() % 2 == 0 ? kEndless : -kEndless;
  for (std::int64_t i = 11 + runtime.rank(); i < elements; i += 43)
    values[static_cast<std::size_t>(i)] = std::nan("");
  for (std::int64_t i = 5; i < elements; i += 37)
    values[static_cast<std::size_t>(i)] = runtime.rank() % 2 == 0 ? -0.0 : 0.0;
  const Tensor flat = runtime.memory().allocate(elements, dtype);
  runtime.kernels().write(runtime.stream(StreamRole::compute), Span::of(flat), values);
  return flat;
}

void append(Values& to, Runtime& runtime, const Span& from) {
  const Values values = runtime.kernels().read(runtime.stream(StreamRole::compute), from);
  to.insert(to.end(), values.begin(), values.end());
}

// Every reduction of so many elements; of reduce, what its root has.
Values reduce_all_ways(Runtime& runtime, std::int64_t elements, DType dtype, ReduceOp op) {
  Stream& compute = runtime.stream(StreamRole::compute);
  Stream& side = runtime.stream(StreamRole::reduction);
  ProcessGroup& group = runtime.group(GroupKind::data);
  const std::int64_t world = runtime.world_size();
  const Tensor all = rank_values(runtime, elements, dtype, 1);
  const Tensor rooted = rank_values(runtime, elements, dtype, 2);
  const Tensor whole = rank_values(runtime, elements * world, dtype, 3);
  const Tensor part = runtime.memory().allocate(elements, dtype);
  const Tensor in_place = rank_values(runtime, elements * world, dtype, 4);
  const int root = static_cast<int>(elements % world);
  side.wait(compute);
  group.wait(group.all_reduce(side, Span::of(all), op), compute);
  group.wait(group.reduce(side, Span::of(rooted), root, op), compute);
  group.wait(group.reduce_scatter(side, Span::of(part), Span::of(whole), op), compute);
  const Span own = Span::of(in_place, elements * runtime.rank(), elements);
  group.wait(group.reduce_scatter(compute, own, Span::of(in_place), op), compute);
  Values out;
  append(out, runtime, Span::of(all));
  append(out, runtime, Span::of(part));
  append(out, runtime, own);
  if (runtime.rank() == root) append(out, runtime, Span::of(rooted));
  return out;
}

TEST_F(CudaPeerSums, Have_the_bits_of_the_host_in_every_dtype_and_size) {
  for (const DType dtype : kDTypes)
    for (const ReduceOp op : kReduceOps)
      expect_same("small, " + std::string(dtype_name(dtype)), [&](Runtime& runtime) {
        Values out;
        for (const std::int64_t elements : {0, 1, 3, 64, 257, 4'099}) {
          const Values more = reduce_all_ways(runtime, elements, dtype, op);
          out.insert(out.end(), more.begin(), more.end());
        }
        return out;
      });
}

TEST_F(CudaPeerSums, Have_the_bits_of_the_host_where_copy_engines_bring_the_slices) {
  for (const DType dtype : kDTypes)
    expect_same("large, " + std::string(dtype_name(dtype)), [&](Runtime& runtime) {
      const std::int64_t slice = kMegabyte / item_bytes(dtype) + 65;
      return reduce_all_ways(runtime, slice * runtime.world_size() - 3, dtype, ReduceOp::sum);
    });
}

TEST_F(CudaPeerSums, Keep_each_root_apart_in_a_batch) {
  expect_same("batch", [](Runtime& runtime) {
    Stream& side = runtime.stream(StreamRole::reduction);
    Stream& compute = runtime.stream(StreamRole::compute);
    ProcessGroup& group = runtime.group(GroupKind::data);
    const Tensor all = rank_values(runtime, 9'000, DType::bfloat16, 5);
    side.wait(compute);
    const std::array<Span, 4> parts = {Span::of(all, 0, 100), Span::of(all, 100, 900),
                                       Span::of(all, 1'001, 4'000), Span::of(all, 6'000, 2'999)};
    const std::array<int, 4> roots = {0, 0, 1, runtime.world_size() - 1};
    Work last;
    group.begin_batch();
    for (std::size_t i = 0; i < parts.size(); ++i)
      last = group.reduce(side, parts[i], roots[i], ReduceOp::sum);
    group.end_batch();
    group.wait(last, compute);
    Values out;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (roots[i] == runtime.rank()) append(out, runtime, parts[i]);
    return out;
  });
}

// Where all read from one GPU, by way of each other; and less, straight from it.
TEST_F(CudaPeerSums, Bring_what_one_rank_has_to_all_by_way_of_all) {
  expect_same("broadcast", [](Runtime& runtime) {
    Stream& side = runtime.stream(StreamRole::all_gather);
    Stream& compute = runtime.stream(StreamRole::compute);
    ProcessGroup& group = runtime.group(GroupKind::data);
    Values out;
    for (int root = 0; root < runtime.world_size(); ++root)
      for (const std::int64_t elements : {kMegabyte + 7, 2 * kMegabyte - 1}) {
        const Tensor all = rank_values(runtime, elements, DType::bfloat16, 7 + root);
        side.wait(compute);
        group.begin_batch();
        const Work work = group.broadcast(side, Span::of(all), root);
        group.end_batch();
        group.wait(work, compute);
        append(out, runtime, Span::of(all));
      }
    return out;
  });
}

// 120 MB a rank go through the staging in several parts.
TEST_F(CudaPeerSums, Go_through_the_staging_part_by_part) {
  CudaWorld({.world_size = gpus_->count()}, *gpus_).run([](Runtime& runtime) {
    constexpr std::int64_t kElements = 60'000'011;
    constexpr std::int64_t kRun = 1'000'003;
    Stream& compute = runtime.stream(StreamRole::compute);
    Kernels& kernels = runtime.kernels();
    const Tensor data = runtime.memory().allocate(kElements, DType::float32);
    const Tensor wanted = runtime.memory().allocate(kElements, DType::float32);
    const double world = runtime.world_size();
    for (std::int64_t begin = 0; begin < kElements; begin += kRun) {
      const std::int64_t elements = std::min(kRun, kElements - begin);
      const double number = static_cast<double>(begin / kRun);
      kernels.fill(compute, Span::of(data, begin, elements), number * (1 + runtime.rank()));
      kernels.fill(compute, Span::of(wanted, begin, elements), number * world * (world + 1) / 2);
    }
    ProcessGroup& group = runtime.group(GroupKind::data);
    group.wait(group.all_reduce(compute, Span::of(data), ReduceOp::sum), compute);
    const Tensor distance = runtime.memory().allocate(1, DType::float64);
    kernels.fill(compute, Span::of(distance), 0.0);
    kernels.add(compute, Span::of(data), Span::of(wanted), -1.0);
    kernels.add_squares(compute, Span::of(distance), Span::of(data));
    EXPECT_EQ(kernels.read(compute, Span::of(distance)), Values{0.0});
    EXPECT_LE(runtime.memory().stats(Placement::device).peak_bytes,
              8 * kElements + 8 + (std::int64_t{48} << 20));
  });
}

// Copies are queued by the hosts of the ranks that read. An owner whose host is ahead gives its
// memory back before its GPU has done anything; no later turn wants as much, so it leaves the GPU.
TEST_F(CudaPeerSums, Let_an_owner_give_its_input_back_when_its_call_returns) {
  CudaWorld({.world_size = gpus_->count()}, *gpus_).run([](Runtime& runtime) {
    Stream& compute = runtime.stream(StreamRole::compute);
    constexpr std::int64_t kMore = 1024;
    const std::int64_t elements = kMegabyte;
    const Tensor sum = runtime.memory().allocate(elements, DType::float32);
    for (int turn = 0; turn < 40; ++turn) {
      const std::int64_t all = elements * runtime.world_size();
      const Tensor tensor = runtime.memory().allocate(all + turn * kMore, DType::float32);
      const Span input = Span::of(tensor, 0, all);
      runtime.kernels().fill(compute, input, turn + runtime.rank());
      if (runtime.rank() == turn % runtime.world_size())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      runtime.group(GroupKind::data).reduce_scatter(compute, Span::of(sum), input, ReduceOp::max);
    }
    EXPECT_EQ(runtime.kernels().read(compute, Span::of(sum, elements - 1, 1)),
              Values{39.0 + runtime.world_size() - 1});
  });
}

// What an iteration does: a sum of few numbers, one of many, a gather; the next one goes on from
// it.
class Iteration {
 public:
  explicit Iteration(Runtime& runtime)
      : runtime_(runtime),
        whole_(rank_values(runtime, kPart * runtime.world_size(), DType::bfloat16, 6)),
        part_(runtime.memory().allocate(kPart, DType::bfloat16)),
        norm_(runtime.memory().allocate(1, DType::float64)) {
    runtime.kernels().fill(compute_, Span::of(norm_), 1.0 + runtime.rank());
  }

  void run() {
    ProcessGroup& group = runtime_.group(GroupKind::data);
    Kernels& kernels = runtime_.kernels();
    side_.wait(compute_);
    const Work sums = group.reduce_scatter(side_, Span::of(part_), Span::of(whole_), ReduceOp::sum);
    group.all_reduce(compute_, Span::of(norm_), ReduceOp::sum);
    group.wait(sums, compute_);
    kernels.scale(compute_, Span::of(norm_), 0.3);
    kernels.scale(compute_, Span::of(part_), 0.6);
    group.barrier(compute_);
    group.all_gather(compute_, Span::of(whole_), Span::of(part_));
  }

  Values values() {
    Values out;
    append(out, runtime_, Span::of(whole_));
    append(out, runtime_, Span::of(norm_));
    return out;
  }

 private:
  static constexpr std::int64_t kPart = kMegabyte / 2 + 17;
  Runtime& runtime_;
  Stream& compute_ = runtime_.stream(StreamRole::compute);
  Stream& side_ = runtime_.stream(StreamRole::reduction);
  Tensor whole_;
  Tensor part_;
  Tensor norm_;
};

TEST_F(CudaPeerSums, Meet_in_replays_of_a_captured_iteration_and_between_them) {
  expect_same("captured", [](Runtime& runtime) {
    Iteration iteration(runtime);
    iteration.run();
    const auto step = [&] { iteration.run(); };
    std::unique_ptr<DeviceGraph> graph;
    if (GraphCapture* const graphs = runtime.graphs()) graph = graphs->capture(step);
    for (int replay = 0; replay < 3; ++replay) graph ? graph->replay() : step();
    iteration.run();
    for (int replay = 0; replay < 2; ++replay) graph ? graph->replay() : step();
    return iteration.values();
  });
}

TEST_F(CudaPeerSums, Name_ranks_whose_calls_differ) {
  const auto errors = CudaWorld({.world_size = 2}, *gpus_).try_run([](Runtime& runtime) {
    const Tensor data = runtime.memory().allocate(77, DType::float32);
    runtime.group(GroupKind::data)
        .all_reduce(runtime.stream(StreamRole::compute), Span::of(data, 0, 77 - runtime.rank()),
                    ReduceOp::sum);
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    try {
      std::rethrow_exception(error);
    } catch (const RuntimeFault& fault) {
      EXPECT_THAT(fault.what(), HasSubstr("all_reduce(sum) of 77 float32"));
      EXPECT_THAT(fault.what(), HasSubstr("all_reduce(sum) of 76 float32"));
    }
  }
}

// Rank 0's GPU waits in a replay for flags that rank 1 never writes.
TEST_F(CudaPeerSums, Free_a_GPU_that_waits_for_a_rank_that_has_ended) {
  CudaWorld world({.world_size = 2, .timeout_ms = 1'500}, *gpus_);
  std::string text;
  try {
    world.run([](Runtime& runtime) {
      Iteration iteration(runtime);
      iteration.run();
      const auto graph = runtime.graphs()->capture([&] { iteration.run(); });
      for (int replay = runtime.rank(); replay < 3; ++replay) graph->replay();
      runtime.stream(StreamRole::compute).synchronize();
    });
  } catch (const RuntimeFault& fault) {
    text = fault.what();
  }
  EXPECT_THAT(text, HasSubstr("rank 0 waited"));
}

TEST_F(CudaPeerSums, Meet_again_in_the_world_after_a_failure) {
  EXPECT_THROW(CudaWorld({.world_size = 2}, *gpus_).run([](Runtime& runtime) {
    if (runtime.rank() == 1) throw std::runtime_error("this rank has had enough");
    Iteration iteration(runtime);
    iteration.run();
  }),
               std::runtime_error);
  expect_same("after a failure", [](Runtime& runtime) {
    Iteration iteration(runtime);
    iteration.run();
    return iteration.values();
  });
}

}  // namespace
}  // namespace zeroproof
