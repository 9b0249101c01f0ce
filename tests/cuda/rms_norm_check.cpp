#include "engine/runtime/cuda/fused/rms_norm.h"

#include <cmath>

#include "tests/cuda/check.h"

namespace zeroproof::check {
namespace {

constexpr float kEps = 1e-5F;

struct Shape {
  int rows;
  int width;
  bool has_residual;
  bool is_accumulating;
};

std::string text(const Shape& s) {
  return std::to_string(s.rows) + "x" + std::to_string(s.width) + (s.has_residual ? " res" : "") +
         (s.is_accumulating ? " acc" : "");
}

struct Reference {
  std::vector<double> sum, y, inv_rms, dx, dweight;
};

void add_row(const Shape& s, std::size_t row, const std::vector<double>& weight,
             const std::vector<double>& dy, const std::vector<double>& past, Reference& r) {
  const auto width = static_cast<std::size_t>(s.width);
  const std::size_t base = row * width;
  double squares = 0.0;
  for (std::size_t i = 0; i < width; ++i) squares += r.sum[base + i] * r.sum[base + i];
  const double inv = 1.0 / std::sqrt(squares / s.width + static_cast<double>(kEps));
  r.inv_rms.push_back(inv);
  double dot = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    const double normalised = r.sum[base + i] * inv;
    r.y[base + i] = normalised * weight[i];
    dot += dy[base + i] * weight[i] * normalised;
    r.dweight[i] += dy[base + i] * normalised;
  }
  for (std::size_t i = 0; i < width; ++i) {
    const double normalised = r.sum[base + i] * inv;
    r.dx[base + i] = (s.has_residual ? past[base + i] : 0.0) +
                     inv * (dy[base + i] * weight[i] - normalised * dot / s.width);
  }
}

void check_shape(Suite& suite, const Shape& s) {
  Random random(static_cast<std::uint64_t>(s.rows * 31 + s.width));
  const auto width = static_cast<std::size_t>(s.width);
  const std::size_t count = static_cast<std::size_t>(s.rows) * width;
  const auto x = random.normals(count);
  const auto residual = random.normals(count, 2.0);
  const auto weight = random.normals(width);
  const auto dy = random.normals(count);
  const auto past = random.normals(count);
  const auto old_dweight = random.normals(width);

  Reference r{widened(x),
              std::vector<double>(count),
              {},
              std::vector<double>(count),
              std::vector<double>(width)};
  for (std::size_t i = 0; i < count && s.has_residual; ++i) {
    r.sum[i] = rounded(r.sum[i] + from_bf16(residual[i]));
  }
  if (s.is_accumulating) r.dweight = widened(old_dweight);
  const auto wide_weight = widened(weight);
  const auto wide_dy = widened(dy);
  const auto wide_past = widened(past);
  for (std::size_t row = 0; row < static_cast<std::size_t>(s.rows); ++row) {
    add_row(s, row, wide_weight, wide_dy, wide_past, r);
  }

  const Buffer<Bf16> d_x(x), d_residual(residual), d_weight(weight), d_dy(dy), d_past(past);
  const Buffer<Bf16> sum(count), y(count), dx(count), dweight(old_dweight);
  const Buffer<float> inv_rms(static_cast<std::size_t>(s.rows));
  const Buffer<float> partials(
      static_cast<std::size_t>(cuda::rms_norm_partial_floats(s.rows, s.width)));
  ZP_REQUIRE(cuda::rms_norm_forward(
      {d_x.data(), s.has_residual ? d_residual.data() : nullptr, d_weight.data(), sum.data(),
       y.data(), inv_rms.data(), s.rows, s.width, kEps},
      nullptr));
  const Bf16* normalised = s.has_residual ? sum.data() : d_x.data();
  const auto backward = [&] {
    ZP_REQUIRE(cuda::rms_norm_backward(
        {d_dy.data(), normalised, d_weight.data(), inv_rms.data(),
         s.has_residual ? d_past.data() : nullptr, dx.data(), dweight.data(), partials.data(),
         s.rows, s.width, s.is_accumulating},
        nullptr));
  };
  backward();
  if (s.has_residual) compare(suite, {"rms_norm sum", text(s), 3e-3}, sum, r.sum);
  compare(suite, {"rms_norm y", text(s), 3e-3}, y, r.y);
  compare(suite, {"rms_norm inv_rms", text(s), 1e-6}, inv_rms, r.inv_rms);
  compare(suite, {"rms_norm dx", text(s), 3e-3}, dx, r.dx);
  compare(suite, {"rms_norm dweight", text(s), 3e-3}, dweight, r.dweight);
  if (s.is_accumulating) return;
  const auto first = dweight.download();
  backward();
  expect(suite, "rms_norm dweight twice", text(s), dweight.download() == first);
}

void time_shape(int rows) {
  constexpr int kWidth = 1024;
  constexpr int kSets = 4;
  const std::size_t count = static_cast<std::size_t>(rows) * kWidth;
  Buffer<Bf16> x(count * kSets), residual(count * kSets), weight(kWidth), y(count * kSets);
  const Buffer<Bf16> sum(count * kSets), dweight(kWidth);
  const Buffer<float> inv_rms(static_cast<std::size_t>(rows));
  const Buffer<float> partials(
      static_cast<std::size_t>(cuda::rms_norm_partial_floats(rows, kWidth)));
  x.fill(1);
  residual.fill(2);
  weight.fill(3);
  const std::string shape = std::to_string(rows) + "x1024";
  const double bytes = 4.0 * static_cast<double>(count) * 2.0;
  time({"rms_norm forward", shape, bytes}, [&](int set) {
    const std::size_t at = static_cast<std::size_t>(set % kSets) * count;
    ZP_REQUIRE(cuda::rms_norm_forward({x.at(at), residual.at(at), weight.data(), sum.at(at),
                                       y.at(at), inv_rms.data(), rows, kWidth, kEps},
                                      nullptr));
  });
  time({"rms_norm backward", shape, bytes}, [&](int set) {
    const std::size_t at = static_cast<std::size_t>(set % kSets) * count;
    ZP_REQUIRE(cuda::rms_norm_backward(
        {x.at(at), sum.at(at), weight.data(), inv_rms.data(), residual.at(at), y.at(at),
         dweight.data(), partials.data(), rows, kWidth, false},
        nullptr));
  });
}

}  // namespace

void check_rms_norm(Suite& suite) {
  if (!suite.wants("rms_norm")) return;
  check_shape(suite, {7, 64, true, false});
  check_shape(suite, {3, 8, false, false});
  check_shape(suite, {37, 1000, true, false});
  check_shape(suite, {5, 1032, true, true});
  if (suite.is_small) return;
  check_shape(suite, {2500, 1024, true, false});
  check_shape(suite, {2500, 1024, false, true});
  check_shape(suite, {1030, 2048, true, false});
  check_shape(suite, {9, 4096, false, false});
  check_shape(suite, {700, 8192, true, false});
  check_shape(suite, {3, 5000, true, false});
  if (!suite.is_timing) return;
  time_shape(8192);
  time_shape(4096);
}

}  // namespace zeroproof::check
