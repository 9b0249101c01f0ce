// Norm, activation, loss and embedding; attention is in cpu_attention.cpp.
#include "model/cpu_fused_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

using Values = std::vector<double>;

void check(bool fits, const char* text) {
  if (!fits) throw AutogradError(text);
}

std::size_t width_of(const Tensor& x) {
  check(!x.sizes().empty() && x.sizes().back() > 0,
        "a fused operation needs rows that have a width");
  return static_cast<std::size_t>(x.sizes().back());
}

std::size_t rows_of(const Tensor& x) {
  return static_cast<std::size_t>(x.numel()) / width_of(x);
}

// Class or row numbers, each below `count`.
std::vector<std::size_t> numbers_of(const Tensor& ids, std::int64_t count) {
  std::vector<std::size_t> numbers;
  for (const double id : ids.values()) {
    if (!(id >= 0.0 && id < static_cast<double>(count) && id == std::floor(id)))
      throw AutogradError(
          fmt::format("index {} is out of bounds for {} rows or classes", id, count));
    numbers.push_back(static_cast<std::size_t>(id));
  }
  return numbers;
}

double dot(const double* a, const double* b, std::size_t count) {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

constexpr double kGeluTanhFactor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
constexpr double kGeluTanhCubic = 0.044715;

double gelu_of(double x) {
  return 0.5 * x * (1.0 + std::tanh(kGeluTanhFactor * (x + kGeluTanhCubic * x * x * x)));
}

double gelu_slope(double x) {
  const double inner = std::tanh(kGeluTanhFactor * (x + kGeluTanhCubic * x * x * x));
  const double argument_slope = kGeluTanhFactor * (1.0 + 3.0 * kGeluTanhCubic * x * x);
  return 0.5 * (1.0 + inner) + 0.5 * x * (1.0 - inner * inner) * argument_slope;
}

}  // namespace

RmsNormOutputs CpuFusedOps::add_rms_norm(const Tensor& x, const Tensor& residual,
                                         const Tensor& weight, double eps) const {
  const std::size_t width = width_of(x);
  const std::size_t rows = rows_of(x);
  check(weight.sizes() == Shape{x.sizes().back()}, "add_rms_norm: the weight is [width]");
  RmsNormOutputs out{.sum = x, .y = {}, .inverse_rms = {}};
  if (residual.is_defined()) {
    check(residual.sizes() == x.sizes() && residual.dtype() == x.dtype(),
          "add_rms_norm: the residual has the sizes and the dtype of x");
    Values sums = x.values();
    const Values added = residual.values();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += added[i];
    out.sum = Tensor::of(sums, x.sizes(), x.dtype());
  }
  Values y = out.sum.values();
  const Values scales = weight.values();
  Values inverse(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    double* const line = y.data() + row * width;
    inverse[row] = 1.0 / std::sqrt(dot(line, line, width) / static_cast<double>(width) + eps);
    for (std::size_t i = 0; i < width; ++i) line[i] *= inverse[row] * scales[i];
  }
  out.y = Tensor::of(y, x.sizes(), x.dtype());
  out.inverse_rms = Tensor::of(inverse, Shape(x.sizes().begin(), x.sizes().end() - 1),
                               statistics_dtype(x.dtype()));
  return out;
}

// With n = sum * inverse and g = grad_y * weight: inverse * (g - n * mean(g * n)).
RmsNormGrads CpuFusedOps::add_rms_norm_backward(const Tensor& grad_y, const Tensor& grad_sum,
                                                const RmsNormSaved& saved) const {
  const std::size_t width = width_of(saved.sum);
  const std::size_t rows = rows_of(saved.sum);
  check(grad_y.sizes() == saved.sum.sizes(), "add_rms_norm: the gradient has the sizes of x");
  const Values given = grad_y.values();
  const Values inverse = saved.inverse_rms.values();
  const Values weights = saved.weight.values();
  Values normalized = saved.sum.values();
  Values to_x(normalized.size(), 0.0);
  if (grad_sum.is_defined()) to_x = grad_sum.values();
  Values to_weight(width, 0.0);
  Values scaled(width);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = row * width;
    for (std::size_t i = 0; i < width; ++i) {
      normalized[at + i] *= inverse[row];
      scaled[i] = given[at + i] * weights[i];
      to_weight[i] += given[at + i] * normalized[at + i];
    }
    const double along =
        dot(scaled.data(), normalized.data() + at, width) / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      to_x[at + i] += inverse[row] * (scaled[i] - normalized[at + i] * along);
  }
  return {Tensor::of(to_x, saved.sum.sizes(), saved.sum.dtype()),
          Tensor::of(to_weight, saved.weight.sizes(), saved.weight.dtype())};
}

Tensor CpuFusedOps::gelu(const Tensor& x) const {
  Values values = x.values();
  for (double& value : values) value = gelu_of(value);
  return Tensor::of(values, x.sizes(), x.dtype());
}

Tensor CpuFusedOps::gelu_backward(const Tensor& grad, const Tensor& x) const {
  check(grad.sizes() == x.sizes(), "gelu: the gradient has the sizes of x");
  Values values = grad.values();
  const Values at = x.values();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= gelu_slope(at[i]);
  return Tensor::of(values, x.sizes(), x.dtype());
}

CrossEntropyOutputs CpuFusedOps::cross_entropy(const Tensor& logits, const Tensor& targets) const {
  check(logits.sizes().size() == 2 && targets.sizes() == Shape{logits.sizes()[0]},
        "cross_entropy: logits are [rows, classes], targets [rows]");
  const std::size_t classes = width_of(logits);
  const std::size_t rows = rows_of(logits);
  const std::vector<std::size_t> chosen = numbers_of(targets, logits.sizes()[1]);
  Values values = logits.values();
  const auto count = static_cast<double>(rows);
  double total = 0.0;
  for (std::size_t row = 0; row < rows; ++row) {
    double* const line = values.data() + row * classes;
    const double largest = *std::max_element(line, line + classes);
    const double picked = line[chosen[row]] - largest;
    double sum = 0.0;
    for (std::size_t i = 0; i < classes; ++i) sum += line[i] = std::exp(line[i] - largest);
    total += std::log(sum) - picked;
    for (std::size_t i = 0; i < classes; ++i)
      line[i] = (line[i] / sum - (i == chosen[row] ? 1.0 : 0.0)) / count;
  }
  return {Tensor::of({total / count}, {}, statistics_dtype(logits.dtype())),
          Tensor::of(values, logits.sizes(), logits.dtype())};
}

Tensor CpuFusedOps::cross_entropy_backward(const Tensor& grad_loss,
                                           const Tensor& grad_logits) const {
  const double factor = grad_loss.item();
  if (factor == 1.0) return grad_logits;
  Values values = grad_logits.values();
  for (double& value : values) value *= factor;
  return Tensor::of(values, grad_logits.sizes(), grad_logits.dtype());
}

Tensor CpuFusedOps::embedding(const Tensor& table, const Tensor& ids) const {
  check(table.sizes().size() == 2, "embedding: the table is [rows, width]");
  const std::size_t width = width_of(table);
  const Values values = table.values();
  Values out;
  for (const std::size_t id : numbers_of(ids, table.sizes()[0])) {
    const auto row = values.begin() + static_cast<std::ptrdiff_t>(id * width);
    out.insert(out.end(), row, row + static_cast<std::ptrdiff_t>(width));
  }
  Shape sizes = ids.sizes();
  sizes.push_back(table.sizes()[1]);
  return Tensor::of(out, std::move(sizes), table.dtype());
}

Tensor CpuFusedOps::embedding_backward(const Tensor& grad, const Tensor& ids,
                                       std::int64_t rows) const {
  const std::size_t width = width_of(grad);
  check(rows_of(grad) == static_cast<std::size_t>(ids.numel()),
        "embedding: a row of the gradient for every id");
  const Values given = grad.values();
  Values out(static_cast<std::size_t>(rows) * width, 0.0);
  std::size_t next = 0;
  for (const std::size_t id : numbers_of(ids, rows))
    for (std::size_t i = 0; i < width; ++i) out[id * width + i] += given[next++];
  return Tensor::of(out, {rows, grad.sizes().back()}, grad.dtype());
}

}  // namespace zeroproof
