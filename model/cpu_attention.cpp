// Causal attention of CpuFusedOps: one query after the other, so that no matrix of scores is kept.
#include <algorithm>
#include <cmath>
#include <vector>

#include "model/cpu_fused_ops.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using Values = std::vector<double>;

constexpr std::size_t kWidth = kHeadWidth;
constexpr std::size_t kPairs = kWidth / 2;
constexpr double kScale = 0.125;

// Where rows lie in [batch, length, parts * heads * 64].
struct Layout {
  std::size_t batch;
  std::size_t length;
  std::size_t heads;

  std::size_t row(std::size_t b, std::size_t position, std::size_t head) const {
    return ((b * length + position) * heads + head) * kWidth;
  }
  // part: 0, 1, 2 for q, k, v
  std::size_t qkv_row(std::size_t part, std::size_t b, std::size_t position,
                      std::size_t head) const {
    return (((b * length + position) * 3 + part) * heads + head) * kWidth;
  }
  std::size_t statistic(std::size_t b, std::size_t head, std::size_t position) const {
    return (b * heads + head) * length + position;
  }

  template <class Visit>
  void for_each_query(Visit visit) const {
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t head = 0; head < heads; ++head)
        for (std::size_t position = 0; position < length; ++position) visit(b, head, position);
  }
};

Layout layout_of(const Tensor& qkv, std::int64_t heads) {
  const Shape& sizes = qkv.sizes();
  if (heads < 1 || sizes.size() != 3 || sizes[2] != 3 * heads * kHeadWidth)
    throw AutogradError("causal_attention: qkv is [batch, length, 3 * heads * 64]");
  return {static_cast<std::size_t>(sizes[0]), static_cast<std::size_t>(sizes[1]),
          static_cast<std::size_t>(heads)};
}

double dot(const double* a, const double* b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < kWidth; ++i) sum += a[i] * b[i];
  return sum;
}

void add_times(double* target, double factor, const double* x) {
  for (std::size_t i = 0; i < kWidth; ++i) target[i] += factor * x[i];
}

// q and k by the angle of their position, or back by it.
void rotate(Values& qkv, const Layout& at, double direction) {
  at.for_each_query([&](std::size_t b, std::size_t head, std::size_t position) {
    for (std::size_t part = 0; part < 2; ++part) {
      double* const x = qkv.data() + at.qkv_row(part, b, position, head);
      for (std::size_t i = 0; i < kPairs; ++i) {
        const double rate = std::pow(kRotaryTheta, -static_cast<double>(i) / double{kPairs});
        const double angle = static_cast<double>(position) * rate;
        const double cosine = std::cos(angle);
        const double sine = direction * std::sin(angle);
        const double first = x[i];
        x[i] = first * cosine - x[i + kPairs] * sine;
        x[i + kPairs] = x[i + kPairs] * cosine + first * sine;
      }
    }
  });
}

// Scores of a query with the keys up to its own position.
void score(const Values& qkv, const Layout& at, std::size_t query, Values& scores, std::size_t b,
           std::size_t head) {
  for (std::size_t k = 0; k < scores.size(); ++k)
    scores[k] = kScale * dot(qkv.data() + query, qkv.data() + at.qkv_row(1, b, k, head));
}

}  // namespace

AttentionOutputs CpuFusedOps::causal_attention(const Tensor& qkv, std::int64_t heads) const {
  const Layout at = layout_of(qkv, heads);
  Values turned = qkv.values();
  rotate(turned, at, 1.0);
  AttentionOutputs result;
  result.rotated = Tensor::of(turned, qkv.sizes(), qkv.dtype());
  turned = result.rotated.values();
  Values out(turned.size() / 3, 0.0);
  Values log_sums(at.batch * at.heads * at.length);
  at.for_each_query([&](std::size_t b, std::size_t head, std::size_t position) {
    Values scores(position + 1);
    score(turned, at, at.qkv_row(0, b, position, head), scores, b, head);
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0.0;
    for (const double each : scores) sum += std::exp(each - largest);
    const double log_sum = largest + std::log(sum);
    log_sums[at.statistic(b, head, position)] = log_sum;
    double* const row = out.data() + at.row(b, position, head);
    for (std::size_t k = 0; k <= position; ++k)
      add_times(row, std::exp(scores[k] - largest) / sum,
                turned.data() + at.qkv_row(2, b, k, head));
  });
  result.out = Tensor::of(out, {qkv.sizes()[0], qkv.sizes()[1], heads * kHeadWidth}, qkv.dtype());
  result.log_sum_exp =
      Tensor::of(log_sums, {qkv.sizes()[0], heads, qkv.sizes()[1]}, statistics_dtype(qkv.dtype()));
  return result;
}

// With probabilities p and d = grad_out . out of a query, the gradient of its score with a key is
// p * (grad_out . v - d).
Tensor CpuFusedOps::causal_attention_backward(const Tensor& grad_out, const AttentionOutputs& saved,
                                              std::int64_t heads) const {
  const Layout at = layout_of(saved.rotated, heads);
  if (grad_out.sizes() != saved.out.sizes())
    throw AutogradError("causal_attention: the gradient has the sizes of the result");
  const Values turned = saved.rotated.values();
  const Values given = grad_out.values();
  const Values out = saved.out.values();
  const Values log_sums = saved.log_sum_exp.values();
  Values grads(turned.size(), 0.0);
  at.for_each_query([&](std::size_t b, std::size_t head, std::size_t position) {
    const std::size_t query = at.qkv_row(0, b, position, head);
    const double* const grad = given.data() + at.row(b, position, head);
    const double along = dot(grad, out.data() + at.row(b, position, head));
    Values scores(position + 1);
    score(turned, at, query, scores, b, head);
    for (std::size_t k = 0; k <= position; ++k) {
      const double weight = std::exp(scores[k] - log_sums[at.statistic(b, head, position)]);
      const std::size_t key = at.qkv_row(1, b, k, head);
      const std::size_t value = at.qkv_row(2, b, k, head);
      const double slope = kScale * weight * (dot(grad, turned.data() + value) - along);
      add_times(grads.data() + value, weight, grad);
      add_times(grads.data() + query, slope, turned.data() + key);
      add_times(grads.data() + key, slope, turned.data() + query);
    }
  });
  rotate(grads, at, -1.0);
  return Tensor::of(grads, saved.rotated.sizes(), saved.rotated.dtype());
}

}  // namespace zeroproof
