// A world whose ranks are processes: the bits of the world whose ranks are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "engine/runtime/host/rank_errors.h"
#include "engine/runtime/process/byte_strings.h"
#include "tests/engine/runtime/job_processes.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Values = std::vector<double>;

constexpr std::array kSentDTypes = {DType::float64, DType::float32, DType::bfloat16,
                                    DType::float16};

Tensor filled(Runtime& runtime, std::int64_t elements, DType dtype, int seed) {
  const Tensor tensor = runtime.memory().allocate(elements, dtype);
  Values values;
  for (std::int64_t i = 0; i < elements; ++i)
    values.push_back(1.0 / static_cast<double>(3 + seed + i * 7 + runtime.rank() * 11));
  runtime.kernels().write(runtime.stream(StreamRole::compute), Span::of(tensor), values);
  return tensor;
}

struct Plan {
  GroupKind kind = GroupKind::data;
  int op = 0;
  DType dtype = DType::float32;
  ReduceOp reduce = ReduceOp::sum;
  int elements = 1;
};

// Runs the plan's collectives and keeps every element of the results.
void run_plan(const std::vector<Plan>& plan, Runtime& runtime, Values& out) {
  Stream& stream = runtime.stream(StreamRole::compute);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Plan& of = plan[i];
    ProcessGroup& group = runtime.group(of.kind);
    const int size = group.size();
    const Tensor one = filled(runtime, of.elements, of.dtype, static_cast<int>(i));
    const Tensor all = filled(runtime, of.elements * size, of.dtype, static_cast<int>(i) + 1);
    const int root = static_cast<int>(i) % size;
    if (of.op == 0) group.all_reduce(stream, Span::of(all), of.reduce);
    if (of.op == 1) group.reduce(stream, Span::of(all), root, of.reduce);
    if (of.op == 2) group.reduce_scatter(stream, Span::of(one), Span::of(all), of.reduce);
    if (of.op == 3) group.all_gather(stream, Span::of(all), Span::of(one));
    if (of.op == 4) group.broadcast(stream, Span::of(all), root);
    if (of.op == 5) group.barrier(stream);
    // In place, where it stands in the whole.
    if (of.op == 6)
      group.reduce_scatter(stream, Span::of(all, of.elements * group.rank(), of.elements),
                           Span::of(all), of.reduce);
    for (const Tensor& tensor : {one, all})
      for (const double value : tensor.values()) out.push_back(std::isnan(value) ? -1.0 : value);
  }
}

RC_GTEST_PROP(ProcessWorld, Has_the_bits_of_threads, ()) {
  const int world = *rc::gen::inRange(1, 5);
  const ParallelDegrees degrees{.expert = world % 2 == 0 ? *rc::gen::element(1, 2) : 1};
  const auto plan = *rc::gen::container<std::vector<Plan>>(rc::gen::construct<Plan>(
      rc::gen::element(GroupKind::data, GroupKind::expert, GroupKind::expert_data,
                       GroupKind::tensor),
      rc::gen::inRange(0, 7), rc::gen::elementOf(kSentDTypes),
      rc::gen::element(ReduceOp::sum, ReduceOp::avg, ReduceOp::max), rc::gen::inRange(1, 40)));
  std::vector<Values> wanted(static_cast<std::size_t>(world));
  std::vector<Values> found = wanted;
  HostWorld({.world_size = world, .degrees = degrees}).run([&](Runtime& runtime) {
    run_plan(plan, runtime, wanted[static_cast<std::size_t>(runtime.rank())]);
  });
  StoreMaker maker(StoreMaker::Kind::tcp);
  const auto errors = run_job(maker, world, [&](const std::shared_ptr<Job>& job) {
    HostWorld own({.world_size = world, .degrees = degrees, .job = job});
    own.run([&](Runtime& runtime) {
      run_plan(plan, runtime, found[static_cast<std::size_t>(runtime.rank())]);
    });
  });
  for (const auto& error : errors) RC_ASSERT(what_of(error).empty());
  RC_ASSERT(wanted == found);
}

std::vector<std::exception_ptr> run_world(const HostWorld::Program& program,
                                          int timeout_ms = 120'000) {
  StoreMaker maker(StoreMaker::Kind::tcp);
  return run_job(
      maker, 2,
      [&](const std::shared_ptr<Job>& job) {
        HostWorld({.world_size = 2, .job = job}).run(program);
      },
      timeout_ms);
}

void all_reduce_float32(Runtime& runtime, std::int64_t elements) {
  const Tensor data = filled(runtime, elements, DType::float32, 0);
  runtime.group(GroupKind::data)
      .all_reduce(runtime.stream(StreamRole::compute), Span::of(data), ReduceOp::sum);
}

TEST(ProcessWorld, Tells_every_process_which_rank_failed) {
  const auto errors = run_world([](Runtime& runtime) {
    all_reduce_float32(runtime, 3);
    if (runtime.rank() == 1) throw std::out_of_range("a defect");
    all_reduce_float32(runtime, 3);
  });
  EXPECT_EQ("rank 1 failed: a defect", what_of(errors[0]));
  EXPECT_TRUE(host::is_abort(errors[0]));
  EXPECT_EQ("a defect", what_of(errors[1]));
}

TEST(ProcessWorld, Refuses_collectives_that_differ_on_every_process) {
  const auto errors =
      run_world([](Runtime& runtime) { all_reduce_float32(runtime, 3 + runtime.rank()); });
  for (const auto& error : errors)
    EXPECT_THAT(what_of(error),
                HasSubstr("data group [0, 1], collective 0: rank 0 of the group issued "
                          "all_reduce(sum) of 3 float32, but rank 1 of the group issued "
                          "all_reduce(sum) of 4 float32"));
}

TEST(ProcessWorld, Names_the_collective_that_a_process_left_out) {
  const auto errors = run_world([](Runtime& runtime) {
    if (runtime.rank() == 0) all_reduce_float32(runtime, 3);
  });
  EXPECT_THAT(what_of(errors[0]),
              AllOf(HasSubstr("rank 1 (process "),
                    HasSubstr("ended without data group [0, 1], collective 0: all_reduce(sum) of 3 "
                              "float32")));
}

// What another process could send beside a part of all_reduce(sum) of 3 float32: op, reduction,
// root, dtype, elements of the output; then bytes of the input.
struct ForeignPart {
  std::array<std::int64_t, 5> header;
  std::size_t bytes;
};

std::string packed_foreign_part(const ForeignPart& part) {
  const char* const header = reinterpret_cast<const char*>(part.header.data());
  return pack({std::string(header, sizeof part.header), std::string(part.bytes, '\0')});
}

TEST(ProcessWorld, Refuses_a_part_that_is_none_before_it_is_used) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  const ForeignPart parts[] = {
      {{0, 0, 0, 1, 4}, 24}, {{0, 0, 0, 1, kFar}, 24}, {{0, 0, 0, 1, -1}, 24},
      {{0, 0, 0, 1, 3}, 23}, {{0, 0, 0, 4, 3}, 24},    {{0, 0, 0, -1, 3}, 24},
      {{0, 3, 0, 1, 3}, 24}, {{6, 0, 0, 1, 3}, 24},    {{-1, 0, 0, 1, 3}, 24},
      {{1, 0, 2, 1, 3}, 24}, {{1, 0, -1, 1, 3}, 24},   {{2, 0, 0, 1, 3}, 24},
      {{3, 0, 0, 1, 3}, 24}, {{5, 0, 0, 0, 0}, 8},     {{5, kFar, 0, 0, 0}, 0},
  };
  for (const ForeignPart& part : parts) {
    StoreMaker maker(StoreMaker::Kind::tcp);
    const auto errors = run_job(maker, 2, [&](const std::shared_ptr<Job>& job) {
      HostWorld world({.world_size = 2, .job = job});
      if (job->rank() == 0)
        world.run([](Runtime& runtime) { all_reduce_float32(runtime, 3); });
      else
        job->set("collective/0/0/1", packed_foreign_part(part));
    });
    EXPECT_THAT(what_of(errors[0]), HasSubstr("the part of rank 1 of the group is damaged"))
        << ::testing::PrintToString(part.header);
  }
}

}  // namespace
}  // namespace zeroproof
