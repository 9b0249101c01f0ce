// The host's kernels against formulas over whole tensors, and against the model's optimizers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/runtime/update_rules.h"
#include "model/check.h"
#include "model/cpu_ops.h"
#include "model/optim/adam.h"
#include "model/optim/sgd.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

using ::testing::ElementsAre;
using Values = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

DType any_dtype() {
  return *rc::gen::element(DType::float64, DType::float32, DType::bfloat16, DType::float16);
}

Values any_values(std::size_t count) {
  Values values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(std::ldexp(*rc::gen::inRange(-90'000, 90'000), *rc::gen::inRange(-20, -10)));
  return values;
}

bool is_same_row(const Values& a, const Values& b) {
  const auto is_same_number = [](double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y));
  };
  return std::ranges::equal(a, b, is_same_number);
}

// One rank, its kernels and its compute stream.
struct Rank {
  HostWorld world{HostWorldOptions{}};
  Runtime& runtime = world.runtime(0);
  Kernels& kernels = runtime.kernels();
  Stream& stream = runtime.stream(StreamRole::compute);

  Tensor tensor(const Values& values, DType dtype) {
    const Tensor flat = runtime.memory().allocate(static_cast<std::int64_t>(values.size()), dtype);
    kernels.write(stream, Span::of(flat), values);
    return flat;
  }
};

// As many numbers as there are, in a whole tensor or a part of one, or in a transposed one.
Tensor transposed(const Values& values, DType dtype) {
  Values columns(values.size());
  const std::size_t rows = 2;
  const std::size_t width = values.size() / rows;
  for (std::size_t i = 0; i < values.size(); ++i) columns[i % width * rows + i / width] = values[i];
  const auto wide = static_cast<std::int64_t>(width);
  return Tensor::of(columns, {wide, 2}, dtype).as_strided({2, wide}, {1, 2}, 0);
}

struct Place {
  Tensor tensor;
  Span span;
};

Place any_place(const Values& values, DType dtype) {
  const auto elements = static_cast<std::int64_t>(values.size());
  switch (*rc::gen::inRange(0, 3)) {
    case 0: {
      const Tensor whole = Tensor::of(values, {elements}, dtype);
      return {whole, Span::of(whole)};
    }
    case 1: {
      Values padded = values;
      padded.insert(padded.begin(), {7, 7, 7});
      padded.push_back(7);
      const Tensor whole = Tensor::of(padded, {elements + 4}, dtype);
      return {whole, Span::of(whole, 3, elements)};
    }
    default: {
      const Tensor whole = transposed(values, dtype);
      return {whole, Span::of(whole)};
    }
  }
}

struct Formula {
  const char* name;
  std::function<void(Kernels&, Stream&, Span target, Span source, double number)> kernel;
  double (*expected)(double target, double source, double number);
};

const std::vector<Formula>& formulas() {
  static const std::vector<Formula> kFormulas = {
      {"fill", [](auto& k, auto& s, Span to, Span, double number) { k.fill(s, to, number); },
       [](double, double, double number) { return number; }},
      {"copy", [](auto& k, auto& s, Span to, Span from, double) { k.copy(s, to, from); },
       [](double, double from, double) { return from; }},
      {"copy with a factor",
       [](auto& k, auto& s, Span to, Span from, double number) { k.copy(s, to, from, number); },
       [](double, double from, double number) { return from * number; }},
      {"add", [](auto& k, auto& s, Span to, Span from, double) { k.add(s, to, from); },
       [](double to, double from, double) { return to + from; }},
      {"add with a factor",
       [](auto& k, auto& s, Span to, Span from, double number) { k.add(s, to, from, number); },
       [](double to, double from, double number) { return to + from * number; }},
      {"scale", [](auto& k, auto& s, Span to, Span, double number) { k.scale(s, to, number); },
       [](double to, double, double number) { return to * number; }},
      {"divide", [](auto& k, auto& s, Span to, Span, double number) { k.divide(s, to, number); },
       [](double to, double, double number) { return to / number; }},
  };
  return kFormulas;
}

RC_GTEST_PROP(HostKernels, Compute_each_element_in_double_and_round_once, ()) {
  const auto count = static_cast<std::size_t>(2 * *rc::gen::inRange(1, 6));
  const Place target = any_place(any_values(count), any_dtype());
  const Place source = any_place(any_values(count), any_dtype());
  const double number = *rc::gen::element(1.0, -2.0, 1.0 / 3.0, 65536.0);
  const std::size_t which = *rc::gen::inRange(std::size_t{0}, formulas().size());
  const Formula& formula = formulas()[which];
  RC_LOG() << formula.name;
  Rank rank;
  const Values before = rank.kernels.read(rank.stream, target.span);
  const Values from = rank.kernels.read(rank.stream, source.span);
  formula.kernel(rank.kernels, rank.stream, target.span, source.span, number);
  const Values after = rank.kernels.read(rank.stream, target.span);
  for (std::size_t i = 0; i < count; ++i) {
    const double expected = formula.expected(before[i], from[i], number);
    RC_ASSERT(after[i] == round_to(target.tensor.dtype(), expected));
  }
}

TEST(HostKernels, Leave_what_is_beside_the_span_alone) {
  Rank rank;
  const Tensor data = rank.tensor({1, 2, 3, 4}, DType::float32);
  rank.kernels.scale(rank.stream, Span::of(data, 1, 2), 10.0);
  EXPECT_THAT(data.values(), ElementsAre(1, 20, 30, 4));
}

TEST(HostKernels, Add_squares_and_what_is_not_finite_to_what_is_there) {
  Rank rank;
  const Tensor sum = rank.tensor({100, 5}, DType::float64);
  const Tensor data = rank.tensor({3, 4, kInfinity, -kInfinity, std::nan("")}, DType::float16);
  rank.kernels.add_squares(rank.stream, Span::of(sum), Span::of(data, 0, 2));
  EXPECT_THAT(sum.values(), ElementsAre(125, 5));
  rank.kernels.count_non_finite(rank.stream, Span::of(sum, 1, 1), Span::of(data));
  EXPECT_THAT(sum.values(), ElementsAre(125, 8));
}

TEST(HostKernels, Sum_from_left_to_right) {
  Rank rank;
  const Tensor sum = rank.tensor({1}, DType::float64);
  const Tensor data = rank.tensor(Values(4, 0x1p-27), DType::float64);
  rank.kernels.add_squares(rank.stream, Span::of(sum), Span::of(data));
  EXPECT_EQ(1.0, sum.item());  // each square is lost; the four together would not be
}

TEST(HostKernels, Take_nothing_for_an_empty_span) {
  Rank rank;
  const Tensor data = rank.tensor({1}, DType::float32);
  const Tensor none = rank.runtime.memory().allocate(0, DType::float32);
  rank.kernels.copy(rank.stream, Span::of(none), Span::of(data, 1, 0));
  rank.kernels.fill(rank.stream, Span::of(none), 1.0);
  EXPECT_TRUE(rank.kernels.read(rank.stream, Span::of(none)).empty());
  EXPECT_THAT(data.values(), ElementsAre(1));
}

TEST(HostKernels, Refuse_spans_that_do_not_fit) {
  Rank rank;
  const Tensor data = rank.tensor({1, 2, 3, 4}, DType::float32);
  const Tensor gaps = data.as_strided({2}, {2}, 0);
  EXPECT_THROW(rank.kernels.fill(rank.stream, Span::of(data, 2, 3), 0.0), CheckFailed);
  EXPECT_THROW(rank.kernels.fill(rank.stream, Span::of(gaps, 0, 1), 0.0), CheckFailed);
  EXPECT_THROW(rank.kernels.copy(rank.stream, Span::of(data), Span::of(data, 0, 3)), CheckFailed);
  EXPECT_THROW(rank.kernels.write(rank.stream, Span::of(data), {1.0}), CheckFailed);
  EXPECT_THROW(rank.kernels.sgd(rank.stream, {Span::of(gaps), Span::of(gaps), {}, 1, {}}),
               CheckFailed);
}

// A graph that saved a user's tensor sees the write; one that saved a view of an engine's buffer
// does not, as after `.data` upstream.
TEST(HostKernels, Raise_the_version_of_storage_that_is_not_the_engines_own) {
  Rank rank;
  const Tensor user = Tensor::full({2}, 1.0, DType::float32);
  const Tensor own = rank.tensor({1, 1}, DType::float32);
  rank.kernels.scale(rank.stream, Span::of(user), 2.0);
  rank.kernels.scale(rank.stream, Span::of(own), 2.0);
  EXPECT_EQ(1U, user.impl().storage->version);
  EXPECT_EQ(0U, own.impl().storage->version);
}

optim::AdamOptions any_adam() {
  optim::AdamOptions options;
  options.lr = *rc::gen::element(1e-3, 0.3);
  options.beta1 = *rc::gen::element(0.9, 0.25);
  options.weight_decay = *rc::gen::element(0.0, 0.01);
  options.is_decay_decoupled = *rc::gen::arbitrary<bool>();
  options.is_maximizing = *rc::gen::arbitrary<bool>();
  return options;
}

RC_GTEST_PROP(HostKernels, Update_as_the_models_Adam_does_bit_by_bit, ()) {
  const DType dtype = any_dtype();
  const DType grad_dtype = *rc::gen::element(dtype, DType::float32);
  const optim::AdamOptions options = any_adam();
  const Values start = any_values(5);
  const CpuOps ops;
  const Tensor expected = Tensor::of(start, {5}, dtype);
  optim::Adam::State state;
  Rank rank;
  const Tensor parameter = rank.tensor(start, dtype);
  const Tensor avg = rank.tensor(Values(5, 0.0), dtype);
  const Tensor square = rank.tensor(Values(5, 0.0), dtype);
  const Tensor copy = rank.tensor(Values(5, 0.0), any_dtype());
  const Tensor wanted = rank.tensor(Values(5, 0.0), copy.dtype());
  for (int step = 1; step <= 4; ++step) {
    const Tensor grad = rank.tensor(any_values(5), grad_dtype);
    optim::Adam::update(ops, expected, grad, state, options);
    rank.kernels.adam(rank.stream, {Span::of(parameter), Span::of(grad), Span::of(avg),
                                    Span::of(square), step, options, Span::of(copy)});
    rank.kernels.copy(rank.stream, Span::of(wanted), Span::of(parameter));
    RC_ASSERT(is_same_row(copy.values(), wanted.values()));
    RC_ASSERT(is_same_row(parameter.values(), expected.values()));
    RC_ASSERT(is_same_row(avg.values(), state.exp_avg.values()));
    RC_ASSERT(is_same_row(square.values(), state.exp_avg_sq.values()));
  }
}

optim::SgdOptions any_sgd() {
  optim::SgdOptions options;
  options.lr = *rc::gen::element(1e-3, 0.3);
  options.momentum = *rc::gen::element(0.0, 0.9);
  options.weight_decay = *rc::gen::element(0.0, 0.01);
  options.is_maximizing = *rc::gen::arbitrary<bool>();
  options.is_nesterov = options.momentum != 0.0 && *rc::gen::arbitrary<bool>();
  if (!options.is_nesterov) options.dampening = *rc::gen::element(0.0, 0.3);
  return options;
}

RC_GTEST_PROP(HostKernels, Update_as_the_models_Sgd_does_bit_by_bit, ()) {
  const DType dtype = any_dtype();
  const optim::SgdOptions options = any_sgd();
  const Values start = any_values(5);
  const CpuOps ops;
  const Tensor expected = Tensor::of(start, {5}, dtype);
  Tensor expected_buffer;
  Rank rank;
  const Tensor parameter = rank.tensor(start, dtype);
  const Tensor buffer = rank.runtime.memory().allocate(5, dtype);  // garbage before the first step
  const Span momentum = options.momentum != 0.0 ? Span::of(buffer) : Span{};
  for (int step = 1; step <= 4; ++step) {
    const Tensor grad = rank.tensor(any_values(5), dtype);
    optim::Sgd::update(ops, expected, grad, expected_buffer, options);
    rank.kernels.sgd(rank.stream, {Span::of(parameter), Span::of(grad), momentum, step, options});
    RC_ASSERT(is_same_row(parameter.values(), expected.values()));
    if (options.momentum != 0.0) RC_ASSERT(is_same_row(buffer.values(), expected_buffer.values()));
  }
}

// A compiler that drops a conversion to float and back shows here (g++ 12 at -O2 did).
TEST(UpdateRules, Have_constants_that_are_numbers_of_the_dtype_they_stand_beside) {
  Rank rank;
  const Tensor x = rank.tensor(Values(4, 0.5), DType::float32);
  const Span span = Span::of(x);
  const AdamRule adam = adam_rule({span, span, span, span, 3, {.lr = 0.01, .weight_decay = 0.1}});
  const SgdRule sgd = sgd_rule({span, span, span, 3, {.lr = 0.1, .momentum = 0.9}});
  for (const double constant :
       {adam.correction2, adam.rate, adam.decay, adam.coupled_decay, adam.lerp, adam.beta2,
        adam.rest2, adam.eps, sgd.rate, sgd.decay, sgd.momentum, sgd.rest, sgd.grad_momentum})
    EXPECT_EQ(round_to(DType::float32, constant), constant);
}

}  // namespace
}  // namespace zeroproof
