// The CUDA runtime against the host's: the same programs, the same bits. Skipped without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "engine/runtime/registry.h"
#include "tests/engine/runtime/text_of_error.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/model/nn/init.h"

namespace zeroproof {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<double>;

constexpr std::array kDTypes = {DType::float64, DType::float32, DType::bfloat16, DType::float16};
constexpr std::int64_t kRows = 6;
constexpr std::int64_t kColumns = 35;

class CudaRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    auto opened = Gpus::open(std::min(4, visible_gpus()));
    ASSERT_TRUE(opened) << opened.error().text;
    gpus_ = std::move(*opened);
  }

  // What `program` gives on one rank of each runtime.
  void expect_same(const std::function<Values(Runtime&)>& program, double tolerance = 0.0) {
    HostWorld host({.world_size = 1});
    CudaWorld cuda({.world_size = 1}, *gpus_);
    Values wanted;
    Values found;
    host.run([&](Runtime& runtime) { wanted = program(runtime); });
    cuda.run([&](Runtime& runtime) { found = program(runtime); });
    ASSERT_EQ(wanted.size(), found.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (std::isnan(wanted[i]) && std::isnan(found[i])) continue;
      if (wanted[i] == found[i]) continue;
      ASSERT_LE(std::abs(wanted[i] - found[i]), tolerance * std::abs(wanted[i]))
          << "element " << i << ": " << wanted[i] << " on the host, " << found[i];
    }
  }

  std::optional<Gpus> gpus_;
};

Values some_values(std::uint64_t seed, std::int64_t count, double magnitude = 3.0) {
  nn::InitStream stream(seed);
  Values values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::ldexp(stream.uniform(magnitude), static_cast<int>(i % 23) - 11));
  return values;
}

// A matrix in the runtime's memory, and the same seen with its dimensions swapped.
Tensor matrix(Runtime& runtime, std::uint64_t seed, DType dtype) {
  const Tensor flat = runtime.memory().allocate(kRows * kColumns, dtype);
  runtime.kernels().write(runtime.stream(StreamRole::compute), Span::of(flat),
                          some_values(seed, kRows * kColumns));
  return flat.as_strided({kRows, kColumns}, {kColumns, 1}, 0);
}
Tensor transposed(const Tensor& x) {
  return x.as_strided({x.sizes()[1], x.sizes()[0]}, {x.strides()[1], x.strides()[0]}, 0);
}

void append(Values& to, const Tensor& tensor) {
  const Values values = tensor.values();
  to.insert(to.end(), values.begin(), values.end());
}

TEST_F(CudaRuntime, Moves_and_scales_elements_of_every_dtype_like_the_host) {
  for (const DType to : kDTypes)
    for (const DType from : kDTypes)
      expect_same([&](Runtime& runtime) {
        Kernels& kernels = runtime.kernels();
        Stream& stream = runtime.stream(StreamRole::compute);
        const Tensor target = matrix(runtime, 1, to);
        const Tensor source =
            transposed(matrix(runtime, 2, from).as_strided({kColumns, kRows}, {kRows, 1}, 0));
        kernels.add(stream, Span::of(target), Span::of(source), 0.3);
        kernels.copy(stream, Span::of(target, 7, 50), Span::of(matrix(runtime, 3, from), 9, 50),
                     1.7);
        kernels.scale(stream, Span::of(target, 3, 40), 1.1);
        kernels.divide(stream, Span::of(target, 20, 90), 3.0);
        kernels.fill(stream, Span::of(target, 0, 2), 0.1);
        Values out = target.values();
        append(out, transposed(target));
        return out;
      });
}

TEST_F(CudaRuntime, Sums_small_tensors_from_left_to_right) {
  for (const DType dtype : kDTypes)
    expect_same([&](Runtime& runtime) {
      Kernels& kernels = runtime.kernels();
      Stream& stream = runtime.stream(StreamRole::compute);
      const Tensor sums = runtime.memory().allocate(2, DType::float64);
      kernels.fill(stream, Span::of(sums), 0.5);
      const Tensor x = matrix(runtime, 4, dtype);
      kernels.write(stream, Span::of(x, 3, 2), {INFINITY, NAN});
      kernels.count_non_finite(stream, Span::of(sums, 1, 1), Span::of(x));
      kernels.add_squares(stream, Span::of(sums, 0, 1), Span::of(matrix(runtime, 5, dtype)));
      return kernels.read(stream, Span::of(sums));
    });
}

TEST_F(CudaRuntime, Sums_large_tensors_as_exactly_as_doubles_do) {
  expect_same(
      [](Runtime& runtime) {
        constexpr std::int64_t kMany = 300'000;
        Stream& stream = runtime.stream(StreamRole::compute);
        const Tensor x = runtime.memory().allocate(kMany, DType::float32);
        runtime.kernels().write(stream, Span::of(x), some_values(6, kMany));
        const Tensor sum = runtime.memory().allocate(1, DType::float64);
        runtime.kernels().fill(stream, Span::of(sum), 0.0);
        runtime.kernels().add_squares(stream, Span::of(sum), Span::of(x));
        return sum.values();
      },
      1e-12);
}

TEST_F(CudaRuntime, Updates_parameters_with_the_bits_of_the_host) {
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const bool is_decoupled : {false, true})
      expect_same([&](Runtime& runtime) {
        Kernels& kernels = runtime.kernels();
        Stream& stream = runtime.stream(StreamRole::compute);
        const Tensor parameter = matrix(runtime, 7, dtype);
        const Tensor grad = matrix(runtime, 8, dtype);
        const Tensor avg = matrix(runtime, 9, DType::float32);
        const Tensor square = matrix(runtime, 10, DType::float32);
        kernels.fill(stream, Span::of(square), 0.25);
        optim::AdamOptions adam{.lr = 0.01, .weight_decay = 0.1};
        adam.is_decay_decoupled = is_decoupled;
        const Tensor copy = matrix(runtime, 11, DType::bfloat16);
        kernels.adam(stream, {Span::of(parameter), Span::of(grad), Span::of(avg), Span::of(square),
                              3, adam, Span::of(copy)});
        const optim::SgdOptions sgd{.lr = 0.1, .momentum = 0.9, .dampening = 0.2};
        for (const std::int64_t step : {1, 2})
          kernels.sgd(stream, {Span::of(parameter), Span::of(grad), Span::of(avg), step, sgd});
        Values out = parameter.values();
        append(out, avg);
        append(out, square);
        append(out, copy);
        return out;
      });
}

TEST_F(CudaRuntime, Computes_with_the_bits_of_the_reference) {
  for (const DType dtype : kDTypes)
    expect_same([&](Runtime& runtime) {
      const Ops& ops = runtime.ops();
      const Tensor x = matrix(runtime, 11, dtype);
      const Tensor y = matrix(runtime, 12, DType::float32);
      const Tensor row = y.as_strided({kColumns}, {1}, kColumns);
      Values out;
      for (const UnaryOp op :
           {UnaryOp::neg, UnaryOp::abs, UnaryOp::sign, UnaryOp::relu, UnaryOp::step, UnaryOp::sqrt})
        append(out, ops.unary(op, x));
      for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div})
        append(out, ops.binary(op, x, row));
      append(out, ops.binary(BinaryOp::mul, x, Tensor::full({}, 0.7, dtype)));
      append(out, ops.binary(BinaryOp::add, Tensor::of(some_values(13, kColumns), {kColumns}), x));
      append(out, ops.mm(x, transposed(y)));
      append(out, ops.addmm(row, x, ops.mm(transposed(y), y)));
      append(out, ops.bmm(x.as_strided({2, 3, kColumns}, {3 * kColumns, kColumns, 1}, 0),
                          y.as_strided({2, kColumns, 3}, {3 * kColumns, 1, kColumns}, 0)));
      append(out, ops.sum(transposed(x)));
      append(out, ops.sum_to(x, {kRows, 1}));
      append(out, ops.sum_to(transposed(x), {kRows}));
      append(out, ops.max_to(x, {1, kColumns}));
      append(out, ops.cast(transposed(x), DType::float16));
      ops.add_in_place(x, row);
      ops.copy_in_place(x.as_strided({3, 3}, {kColumns, 1}, 2),
                        transposed(x.as_strided({3, 3}, {kColumns, 1}, 1)));
      append(out, x);
      return out;
    });
}

TEST_F(CudaRuntime, Knows_the_functions_of_a_scientific_calculator) {
  expect_same(
      [](Runtime& runtime) {
        const Ops& ops = runtime.ops();
        const Tensor x = matrix(runtime, 14, DType::float64);
        Values out;
        for (const UnaryOp op :
             {UnaryOp::tanh, UnaryOp::sin, UnaryOp::cos, UnaryOp::exp, UnaryOp::erf})
          append(out, ops.unary(op, x));
        const Tensor positive = ops.unary(UnaryOp::abs, x);
        append(out, ops.unary(UnaryOp::log, positive));
        append(out, ops.binary(BinaryOp::pow, positive, Tensor::full({}, 2.5)));
        return out;
      },
      1e-13);
}

TEST_F(CudaRuntime, Counts_memory_as_the_host_does) {
  expect_same([](Runtime& runtime) {
    const Tensor kept = runtime.memory().allocate(100, DType::bfloat16);
    { const Tensor gone = runtime.memory().allocate(50, DType::float32); }
    const MemoryStats stats = runtime.memory().stats(Placement::device);
    return Values{static_cast<double>(stats.live_bytes), static_cast<double>(stats.peak_bytes),
                  static_cast<double>(stats.allocations), kept.values()[99]};
  });
}

// What each rank ends with, of every collective on data whose sums are exact.
Values run_collectives(Runtime& runtime, DType dtype) {
  Stream& compute = runtime.stream(StreamRole::compute);
  Stream& side = runtime.stream(StreamRole::reduction);
  ProcessGroup& group = runtime.group(GroupKind::data);
  const std::int64_t world = runtime.world_size();
  const auto tensor = [&](std::int64_t elements, double first) {
    Values values;
    for (std::int64_t i = 0; i < elements; ++i)
      values.push_back((first + static_cast<double>(i % 5)) * (1 + runtime.rank()));
    const Tensor flat = runtime.memory().allocate(elements, dtype);
    runtime.kernels().write(compute, Span::of(flat), values);
    return flat;
  };
  const Tensor all = tensor(12 * world, 1);
  const Tensor part = tensor(12, 2);
  const Tensor whole = tensor(12 * world, 3);
  const Tensor scattered = tensor(12, 4);
  side.wait(compute);
  Values out;
  group.wait(group.all_reduce(side, Span::of(all), ReduceOp::sum), compute);
  group.wait(group.all_gather(side, Span::of(whole), Span::of(part)), compute);
  group.wait(group.reduce_scatter(side, Span::of(scattered), Span::of(all), ReduceOp::max),
             compute);
  group.wait(group.broadcast(side, Span::of(part), static_cast<int>(world) - 1), compute);
  group.wait(group.reduce(side, Span::of(all), 0, ReduceOp::sum), compute);
  group.wait(group.barrier(side), compute);
  // In place, where it stands in the whole.
  const Span mine = Span::of(whole, 12 * runtime.rank(), 12);
  group.wait(group.reduce_scatter(compute, mine, Span::of(whole), ReduceOp::sum), compute);
  group.wait(group.all_gather(compute, Span::of(whole), mine), compute);
  for (const Tensor& result : {part, whole, scattered}) append(out, result);
  if (runtime.rank() == 0) append(out, all);
  return out;
}

TEST_F(CudaRuntime, Communicates_like_the_host) {
  for (int world = 1; world <= gpus_->count(); ++world)
    for (const DType dtype : kDTypes) {
      std::vector<Values> wanted(static_cast<std::size_t>(world));
      std::vector<Values> found = wanted;
      const auto into = [&](std::vector<Values>& of) {
        return [&](Runtime& runtime) {
          of[static_cast<std::size_t>(runtime.rank())] = run_collectives(runtime, dtype);
        };
      };
      HostWorld({.world_size = world}).run(into(wanted));
      CudaWorld({.world_size = world}, *gpus_).run(into(found));
      EXPECT_EQ(wanted, found) << world << " ranks, " << dtype_name(dtype);
    }
}

TEST_F(CudaRuntime, Leaves_collectives_out_alone_and_in_a_batch) {
  if (gpus_->count() < 2) GTEST_SKIP() << "needs two GPUs";
  CudaWorld world({.world_size = 2, .leaves_out_collectives = true}, *gpus_);
  std::vector<double> found(2);
  world.run([&](Runtime& runtime) {
    Stream& stream = runtime.stream(StreamRole::all_gather);
    ProcessGroup& group = runtime.group(GroupKind::data);
    const Tensor data = runtime.memory().allocate(77, DType::float32);
    runtime.kernels().fill(runtime.stream(StreamRole::compute), Span::of(data), runtime.rank());
    stream.wait(runtime.stream(StreamRole::compute));
    group.begin_batch();
    const Work work = group.broadcast(stream, Span::of(data), 0);
    group.end_batch();
    group.wait(work, stream);
    group.wait(group.all_reduce(stream, Span::of(data), ReduceOp::sum), stream);
    found[static_cast<std::size_t>(runtime.rank())] =
        runtime.kernels().read(stream, Span::of(data)).back();
  });
  EXPECT_EQ((std::vector<double>{0, 1}), found);  // what each rank had
}

// A reduction of 32 MiB beside computation has a communicator of its own, after much other work;
// a small one on the compute stream, asked for later, does not overtake it. The first round alone
// shows no order: its calls wait until NCCL has connected the ranks.
TEST_F(CudaRuntime, Runs_two_communicators_in_the_order_of_their_calls) {
  if (gpus_->count() < 2) GTEST_SKIP() << "needs two GPUs";
  constexpr std::int64_t kElements = std::int64_t{8} << 20;
  constexpr int kDelays = 400;
  constexpr int kRounds = 3;
  CudaWorld world({.world_size = 2, .collectives = CudaCollectives::nccl}, *gpus_);
  world.run([](Runtime& runtime) {
    Stream& beside = runtime.stream(StreamRole::reduction);
    Stream& compute = runtime.stream(StreamRole::compute);
    ProcessGroup& group = runtime.group(GroupKind::data);
    const Tensor large = runtime.memory().allocate(kElements, DType::float32);
    const Tensor small = runtime.memory().allocate(77, DType::float32);
    int overtakes = 0;
    for (int round = 0; round < kRounds; ++round) {
      runtime.kernels().fill(compute, Span::of(small), 1.0);
      beside.wait(compute);
      for (int i = 0; i < kDelays; ++i) runtime.kernels().fill(beside, Span::of(large), 1.0);
      const Work first = group.all_reduce(beside, Span::of(large), ReduceOp::sum);
      const Work second = group.all_reduce(compute, Span::of(small), ReduceOp::sum);
      for (bool is_over = false; !is_over;) {
        const bool is_second_over = group.is_completed(second);
        is_over = group.is_completed(first);
        overtakes += is_second_over && !is_over ? 1 : 0;
      }
      EXPECT_EQ(2.0, runtime.kernels().read(compute, Span::of(small)).back());
      compute.wait(beside);
      EXPECT_EQ(2.0, runtime.kernels().read(compute, Span::of(large, kElements - 1, 1)).back());
    }
    EXPECT_EQ(0, overtakes);
  });
}

TEST_F(CudaRuntime, Ends_every_rank_when_one_fails) {
  if (gpus_->count() < 2) GTEST_SKIP() << "needs two GPUs";
  const auto errors =  // of a world that has gone when the next one wants its GPUs
      CudaWorld({.world_size = 2, .timeout_ms = 20'000}, *gpus_).try_run([](Runtime& runtime) {
        run_collectives(runtime, DType::float32);
        if (runtime.rank() == 1) throw std::runtime_error("this rank has had enough");
        run_collectives(runtime, DType::float32);
      });
  EXPECT_TRUE(errors[0] && errors[1]);
  // The next world finds working communicators again.
  CudaWorld({.world_size = 2}, *gpus_).run([](Runtime& runtime) {
    run_collectives(runtime, DType::float32);
  });
}

TEST_F(CudaRuntime, Names_the_collective_that_a_rank_left_out) {
  if (gpus_->count() < 2) GTEST_SKIP() << "needs two GPUs";
  CudaWorld world({.world_size = 2, .timeout_ms = 1'500}, *gpus_);
  std::string text;
  try {
    world.run([](Runtime& runtime) {
      run_collectives(runtime, DType::float32);
      if (runtime.rank() == 1) return;
      const Tensor data = runtime.memory().allocate(77, DType::float32);
      Stream& stream = runtime.stream(StreamRole::compute);
      runtime.group(GroupKind::data).all_reduce(stream, Span::of(data), ReduceOp::sum);
      stream.synchronize();
    });
  } catch (const RuntimeFault& fault) {
    text = fault.what();
  }
  EXPECT_THAT(text, HasSubstr("rank 0 waited"));
  EXPECT_THAT(text, HasSubstr("data group [0, 1], collective 8: all_reduce of 77 float32"));
}

// A GPU that is busy for longer than the time-out, as one whose kernel spins: its host has queued
// the collective, its queue does not come to it.
TEST_F(CudaRuntime, Names_a_stalled_gpu_and_the_collective_that_it_does_not_reach) {
  if (gpus_->count() < 2) GTEST_SKIP() << "needs two GPUs";
  constexpr std::int64_t kElements = std::int64_t{1} << 32;  // 34 GB: at least 7 ms a launch
  constexpr int kLaunches = 900;  // the driver's queue takes as many without a wait of the host
  const auto errors =
      CudaWorld({.world_size = 2, .timeout_ms = 1'500}, *gpus_).try_run([](Runtime& runtime) {
        run_collectives(runtime, DType::float32);
        Stream& stream = runtime.stream(StreamRole::compute);
        Kernels& kernels = runtime.kernels();
        if (runtime.rank() == 1) {
          const Tensor huge = runtime.memory().allocate(kElements, DType::float64);
          for (int i = 0; i < kLaunches; ++i) kernels.fill(stream, Span::of(huge), i);
        }
        const Tensor data = runtime.memory().allocate(77, DType::float32);
        runtime.group(GroupKind::data).all_reduce(stream, Span::of(data), ReduceOp::sum);
        stream.synchronize();
      });
  // The host whose time-out comes first says so, and ends the other one.
  ASSERT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(text_of(errors[0]) + text_of(errors[1]),
              HasSubstr("collective 8: all_reduce of 77 float32; "
                        "the GPU of rank 1 has not come to it"));
  // The next world finds both GPUs idle, and working communicators.
  CudaWorld({.world_size = 2}, *gpus_).run([](Runtime& runtime) {
    run_collectives(runtime, DType::float32);
  });
}

// Every host would wait inside the driver: numbers of the host are copied after a collective that
// cannot end, because the ranks issued different ones.
TEST_F(CudaRuntime, Ends_ranks_that_write_after_a_mismatch) {
  if (gpus_->count() < 2) GTEST_SKIP() << "needs two GPUs";
  const auto errors =  // of a world that has gone when the next one wants its GPUs
      CudaWorld({.world_size = 2, .timeout_ms = 1'500, .collectives = CudaCollectives::nccl},
                *gpus_)
          .try_run([](Runtime& runtime) {
            Stream& stream = runtime.stream(StreamRole::compute);
            constexpr std::int64_t kElements = std::int64_t{1} << 20;
            const Tensor data = runtime.memory().allocate(kElements, DType::float32);
            ProcessGroup& group = runtime.group(GroupKind::data);
            group.all_reduce(stream, Span::of(data), ReduceOp::sum);
            if (runtime.rank() == 0)
              group.all_reduce(stream, Span::of(data), ReduceOp::sum);
            else
              group.broadcast(stream, Span::of(data), 0);
            const Values values(kElements, 1.0);
            for (int i = 0; i < 8; ++i) runtime.kernels().write(stream, Span::of(data), values);
            stream.synchronize();
          });
  EXPECT_TRUE(errors[0] || errors[1]);
  CudaWorld({.world_size = 2}, *gpus_).run([](Runtime& runtime) {
    run_collectives(runtime, DType::float32);
  });
}

TEST(CudaAbsent, Says_what_is_missing) {
  const RuntimeInfo* const info = find_runtime("cuda");
  ASSERT_NE(nullptr, info);
  EXPECT_EQ(info->is_available, visible_gpus() > 0);
  if (info->is_available) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(std::string(info->reason), HasSubstr("CUDA"));
  const auto opened = Gpus::open(1);
  ASSERT_FALSE(opened);
  EXPECT_EQ(ErrorCode::cannot_run, opened.error().code);
}

}  // namespace
}  // namespace zeroproof
