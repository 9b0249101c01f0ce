// The sum over ranks, bit for bit, on one GPU; how fast it is.

#include <algorithm>
#include <deque>

#include "engine/runtime/cuda/kernels/launches.h"
#include "tests/cuda/check.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof::check {
namespace {

// From the first to the last, each partial sum rounded.
std::vector<double> summed(const std::vector<std::vector<double>>& inputs, DType dtype,
                           ReduceOp op) {
  std::vector<double> totals = inputs[0];
  for (std::size_t rank = 1; rank < inputs.size(); ++rank)
    for (std::size_t i = 0; i < totals.size(); ++i) {
      const double x = inputs[rank][i];
      totals[i] = op == ReduceOp::max ? std::max(totals[i], x) : round_to(dtype, totals[i] + x);
    }
  if (op == ReduceOp::avg)
    for (double& total : totals)
      total = round_to(dtype, total / static_cast<double>(inputs.size()));
  return totals;
}

std::vector<Bf16> draw(Random& random, std::size_t count, Bf16) {
  return random.normals(count);
}
std::vector<float> draw(Random& random, std::size_t count, float) {
  return random.floats(count);
}

struct Shape {
  int ranks;
  std::size_t elements;
  std::size_t shift;  // in elements: where not a multiple of 16 bytes, no access is of 16
};

template <class T>
void check_shape(Suite& suite, const Shape& s, DType dtype, ReduceOp op) {
  Random random(s.elements + static_cast<std::size_t>(s.ranks));
  std::deque<Buffer<T>> inputs;  // that stay where they are
  std::vector<std::vector<double>> values;
  cuda::RankSum sum;
  for (int rank = 0; rank < s.ranks; ++rank) {
    std::vector<T> drawn = draw(random, s.elements + s.shift, T{});
    sum.inputs[static_cast<std::size_t>(rank)] = inputs.emplace_back(drawn).at(s.shift);
    drawn.erase(drawn.begin(), drawn.begin() + static_cast<std::ptrdiff_t>(s.shift));
    values.push_back(widened(drawn));
  }
  const Buffer<T> output(s.elements);
  sum.output = output.data();
  sum.elements = static_cast<std::int64_t>(s.elements);
  sum.dtype = dtype;
  sum.reduce = op;
  sum.ranks = s.ranks;
  ZP_REQUIRE(cuda::launch_rank_sum(nullptr, sum));
  const std::string text = std::to_string(s.ranks) + "x" + std::to_string(s.elements);
  expect(suite, "rank_sum " + std::string(dtype_name(dtype)), text,
         widened(output.download()) == summed(values, dtype, op));
}

void time_bucket(int ranks) {
  constexpr std::size_t kElements = 5'133'312;  // a quarter of a bucket of M267
  std::deque<Buffer<Bf16>> inputs;
  cuda::RankSum sum;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.emplace_back(kElements).fill(7);
    sum.inputs[static_cast<std::size_t>(rank)] = inputs.back().data();
  }
  sum.output = inputs.front().data();
  sum.elements = kElements;
  sum.dtype = DType::bfloat16;
  sum.ranks = ranks;
  const double bytes = 2.0 * kElements * (ranks + 1);
  time({"rank_sum", std::to_string(ranks) + " ranks", bytes},
       [&](int) { ZP_REQUIRE(cuda::launch_rank_sum(nullptr, sum)); });
}

}  // namespace

void check_rank_sum(Suite& suite) {
  if (!suite.wants("rank_sum")) return;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max})
    for (const Shape& s : {Shape{2, 1, 0}, Shape{3, 67, 0}, Shape{4, 1'027, 1}, Shape{8, 4'096, 0},
                           Shape{16, 513, 3}}) {
      check_shape<Bf16>(suite, s, DType::bfloat16, op);
      check_shape<float>(suite, s, DType::float32, op);
    }
  if (suite.is_timing) time_bucket(4);
}

}  // namespace zeroproof::check
