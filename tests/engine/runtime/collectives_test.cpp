// Collectives between threads against sums done one after the other, here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/check.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Values = std::vector<double>;

enum class Op { all_reduce, reduce, reduce_scatter, all_gather, broadcast };

struct Case {
  Op op = Op::all_reduce;
  int world = 1;
  DType dtype = DType::float32;
  ReduceOp reduce = ReduceOp::sum;
  int root = 0;
  std::int64_t elements = 0;  // of what a rank ends with, or of its part of it
  bool is_in_place = false;
  std::vector<Values> inputs;  // of each rank
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "op " << static_cast<int>(c.op) << ", world " << c.world << ", "
             << dtype_name(c.dtype) << ", reduce " << static_cast<int>(c.reduce) << ", root "
             << c.root << ", elements " << c.elements << ", in place " << c.is_in_place;
}

std::size_t count(std::int64_t elements) {
  return static_cast<std::size_t>(elements);
}

// Mostly numbers whose sums round, now and then one that is not finite.
double number(DType dtype) {
  const int kind = *rc::gen::inRange(0, 60);
  if (kind == 0) return std::numeric_limits<double>::infinity();
  if (kind == 1) return std::numeric_limits<double>::quiet_NaN();
  const int significand = *rc::gen::inRange(-100'000, 100'000);
  return round_to(dtype, std::ldexp(significand, *rc::gen::inRange(-12, 3)));
}

Case any_case() {
  Case c;
  c.op = static_cast<Op>(*rc::gen::inRange(0, 5));
  c.world = *rc::gen::element(1, 2, 3, 4, 8);
  c.dtype = *rc::gen::element(DType::float64, DType::float32, DType::bfloat16, DType::float16);
  c.reduce = static_cast<ReduceOp>(*rc::gen::inRange(0, 3));
  c.root = *rc::gen::inRange(0, c.world);
  c.elements = *rc::gen::inRange(0, 9);
  c.is_in_place = *rc::gen::arbitrary<bool>();
  const std::int64_t length = c.op == Op::reduce_scatter ? c.elements * c.world : c.elements;
  for (int rank = 0; rank < c.world; ++rank) {
    Values& input = c.inputs.emplace_back();
    for (std::int64_t i = 0; i < length; ++i) input.push_back(number(c.dtype));
  }
  return c;
}

double reduced(const Case& c, std::size_t element) {
  double total = c.inputs[0][element];
  for (std::size_t rank = 1; rank < c.inputs.size(); ++rank) {
    const double x = c.inputs[rank][element];
    if (c.reduce == ReduceOp::max) {
      total = std::isnan(total) || std::isnan(x) ? std::nan("") : std::max(total, x);
    } else {
      total = round_to(c.dtype, total + x);
    }
  }
  return c.reduce == ReduceOp::avg ? round_to(c.dtype, total / c.world) : total;
}

// What a rank has to end with.
Values expected_on(const Case& c, int rank) {
  Values values;
  switch (c.op) {
    case Op::broadcast:
      return c.inputs[static_cast<std::size_t>(c.root)];
    case Op::all_gather:
      for (const Values& input : c.inputs) values.insert(values.end(), input.begin(), input.end());
      return values;
    case Op::reduce_scatter:
      for (std::size_t i = 0; i < count(c.elements); ++i)
        values.push_back(reduced(c, count(rank * c.elements) + i));
      return values;
    default:
      for (std::size_t i = 0; i < count(c.elements); ++i) values.push_back(reduced(c, i));
      return values;
  }
}

// Where the input goes and the result comes from. In place, the part is a part of the whole.
struct Buffers {
  Tensor whole;
  Tensor part;
  Span input;
  Span output;

  Buffers(Runtime& runtime, const Case& c) {
    const std::int64_t all = c.elements * c.world;
    if (c.op != Op::all_gather && c.op != Op::reduce_scatter) {
      whole = runtime.memory().allocate(c.elements, c.dtype);
      input = output = Span::of(whole);
      return;
    }
    whole = runtime.memory().allocate(all, c.dtype);
    part = runtime.memory().allocate(c.elements, c.dtype);
    const Span own = Span::of(whole, runtime.rank() * c.elements, c.elements);
    const Span piece = c.is_in_place ? own : Span::of(part);
    input = c.op == Op::all_gather ? piece : Span::of(whole);
    output = c.op == Op::all_gather ? Span::of(whole) : piece;
  }
};

Work issue(ProcessGroup& group, Stream& stream, const Case& c, const Buffers& buffers) {
  switch (c.op) {
    case Op::all_reduce:
      return group.all_reduce(stream, buffers.output, c.reduce);
    case Op::reduce:
      return group.reduce(stream, buffers.output, c.root, c.reduce);
    case Op::reduce_scatter:
      return group.reduce_scatter(stream, buffers.output, buffers.input, c.reduce);
    case Op::all_gather:
      return group.all_gather(stream, buffers.output, buffers.input);
    case Op::broadcast:
      return group.broadcast(stream, buffers.output, c.root);
  }
  return {};
}

bool is_same_number(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof a) == 0;
}

bool is_same(const Values& a, const Values& b) {
  return std::ranges::equal(a, b, is_same_number);
}

// What each rank ends with.
std::vector<Values> run(HostWorld& world, const Case& c) {
  std::vector<Values> results(count(c.world));
  world.run([&](Runtime& runtime) {
    const auto rank = static_cast<std::size_t>(runtime.rank());
    Stream& stream = runtime.stream(StreamRole::reduction);
    ProcessGroup& group = runtime.group(GroupKind::data);
    const Buffers buffers(runtime, c);
    runtime.kernels().write(stream, buffers.input, c.inputs[rank]);
    const Work work = issue(group, stream, c, buffers);
    group.wait(work, runtime.stream(StreamRole::compute));
    EXPECT_TRUE(group.is_completed(work));
    results[rank] = runtime.kernels().read(stream, buffers.output);
  });
  return results;
}

RC_GTEST_PROP(Collectives, Equal_the_sums_done_one_after_the_other, ()) {
  const Case c = any_case();
  RC_LOG() << c;
  HostWorld world({.world_size = c.world});
  const std::vector<Values> results = run(world, c);
  for (int rank = 0; rank < c.world; ++rank) {
    if (c.op == Op::reduce && rank != c.root) continue;
    RC_ASSERT(is_same(results[static_cast<std::size_t>(rank)], expected_on(c, rank)));
  }
}

RC_GTEST_PROP(Collectives, Do_not_depend_on_which_rank_comes_last, ()) {
  const Case c = any_case();
  RC_PRE(c.world > 1);
  HostWorld world({.world_size = c.world});
  const std::vector<Values> first = run(world, c);
  const std::vector<Values> second = run(world, c);
  for (std::size_t rank = 0; rank < first.size(); ++rank)
    RC_ASSERT(is_same(first[rank], second[rank]));
}

TEST(Collectives, Round_each_partial_sum_to_the_dtype) {
  Case c{.world = 3, .dtype = DType::bfloat16, .elements = 1, .inputs = {{256}, {1}, {1}}};
  HostWorld world({.world_size = 3});
  EXPECT_THAT(run(world, c), Each(ElementsAre(256)));  // 256 + 2 in one step would be 258
  c.inputs = {{1}, {1}, {256}};
  EXPECT_THAT(run(world, c), Each(ElementsAre(258)));
}

TEST(Collectives, Leave_garbage_with_others_than_the_root_of_a_reduction) {
  const Case c{.op = Op::reduce, .world = 2, .root = 1, .elements = 1, .inputs = {{1}, {2}}};
  HostWorld poisoned({.world_size = 2});
  EXPECT_TRUE(std::isnan(run(poisoned, c)[0][0]));
  EXPECT_THAT(run(poisoned, c)[1], ElementsAre(3));
}

TEST(Collectives, Keep_their_order_over_many_without_mixing_any) {
  HostWorld world({.world_size = 4});
  world.run([](Runtime& runtime) {
    Stream& stream = runtime.stream(StreamRole::compute);
    const Tensor data = runtime.memory().allocate(1, DType::float64);
    for (int i = 0; i < 500; ++i) {
      runtime.kernels().fill(stream, Span::of(data), i * 10 + runtime.rank());
      const Work work =
          runtime.group(GroupKind::data).all_reduce(stream, Span::of(data), ReduceOp::max);
      ASSERT_EQ(i, work.sequence);
      ASSERT_EQ(i * 10 + 3, runtime.kernels().read(stream, Span::of(data))[0]);
    }
  });
}

TEST(Collectives, Go_through_each_group_by_itself) {
  HostWorld world({.world_size = 4, .degrees = {.tensor = 2}});
  std::vector<Values> sums(4);
  world.run([&](Runtime& runtime) {
    Stream& stream = runtime.stream(StreamRole::compute);
    const Tensor data = runtime.memory().allocate(2, DType::float64);
    runtime.kernels().fill(stream, Span::of(data), std::ldexp(1.0, runtime.rank()));
    runtime.group(GroupKind::data).all_reduce(stream, Span::of(data, 0, 1), ReduceOp::sum);
    runtime.group(GroupKind::tensor).all_reduce(stream, Span::of(data, 1, 1), ReduceOp::sum);
    sums[static_cast<std::size_t>(runtime.rank())] = runtime.kernels().read(stream, Span::of(data));
  });
  EXPECT_THAT(sums, ElementsAre(ElementsAre(5, 3), ElementsAre(10, 3), ElementsAre(5, 12),
                                ElementsAre(10, 12)));
}

TEST(Collectives, Refuse_what_one_rank_can_see_to_be_wrong) {
  HostWorld world({});
  Runtime& runtime = world.runtime(0);
  Stream& stream = runtime.stream(StreamRole::compute);
  ProcessGroup& group = runtime.group(GroupKind::data);
  const Tensor data = runtime.memory().allocate(4, DType::float32);
  const Tensor other = runtime.memory().allocate(4, DType::float16);
  EXPECT_THROW(group.all_gather(stream, Span::of(data), Span::of(data, 0, 3)), CheckFailed);
  EXPECT_THROW(group.reduce_scatter(stream, Span::of(data), Span::of(other), ReduceOp::sum),
               CheckFailed);
  EXPECT_THROW(group.broadcast(stream, Span::of(data), 1), CheckFailed);
  EXPECT_THROW(group.all_reduce(stream, Span::of(data, 2, 3), ReduceOp::sum), CheckFailed);
  EXPECT_THROW(group.wait({0}, stream), CheckFailed);
}

struct Pair {
  const char* name;
  std::function<void(ProcessGroup&, Stream&, Span, bool is_first)> act;
};

// The first rank and the second do something else.
const std::vector<Pair>& mismatches() {
  static const std::vector<Pair> kPairs = {
      {"op",
       [](auto& group, auto& stream, Span data, bool is_first) {
         if (is_first)
           group.broadcast(stream, data, 0);
         else
           group.all_reduce(stream, data, ReduceOp::sum);
       }},
      {"barrier",
       [](auto& group, auto& stream, Span data, bool is_first) {
         if (is_first)
           group.barrier(stream);
         else
           group.broadcast(stream, data, 0);
       }},
      {"elements",
       [](auto& group, auto& stream, Span data, bool is_first) {
         group.all_reduce(stream, data.part(0, is_first ? 1 : 2), ReduceOp::sum);
       }},
      {"reduce op",
       [](auto& group, auto& stream, Span data, bool is_first) {
         group.all_reduce(stream, data, is_first ? ReduceOp::sum : ReduceOp::avg);
       }},
      {"root", [](auto& group, auto& stream, Span data,
                  bool is_first) { group.broadcast(stream, data, is_first ? 0 : 1); }},
      {"dtype",
       [](auto& group, auto& stream, Span data, bool is_first) {
         const Tensor half = Tensor::full({data.elements}, 0.0, DType::float16);
         group.broadcast(stream, is_first ? data : Span::of(half), 0);
       }},
  };
  return kPairs;
}

TEST(Collectives, Fail_on_every_rank_whatever_it_is_that_differs) {
  for (const Pair& pair : mismatches()) {
    HostWorld world({.world_size = 2});
    const auto errors = world.try_run([&](Runtime& runtime) {
      const Tensor data = runtime.memory().allocate(4, DType::float32);
      EXPECT_THROW(pair.act(runtime.group(GroupKind::data), runtime.stream(StreamRole::compute),
                            Span::of(data), runtime.rank() == 0),
                   RuntimeFault)
          << pair.name;
    });
    EXPECT_THAT(errors, Each(nullptr)) << pair.name;
  }
}

}  // namespace
}  // namespace zeroproof
