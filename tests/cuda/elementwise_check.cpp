// Rotary, GELU and the fast Adam; how fast both are.

#include <cmath>

#include "engine/runtime/cuda/fused/adam.h"
#include "engine/runtime/cuda/fused/gelu.h"
#include "engine/runtime/cuda/fused/rotary.h"
#include "engine/runtime/cuda/kernels/launches.h"
#include "tests/cuda/check.h"
#include "zeroproof/internal/engine/runtime/kernels.h"

namespace zeroproof::check {
namespace {

struct RotaryShape {
  int batch;
  int seq;
  int heads;
  std::size_t tokens() const { return static_cast<std::size_t>(batch * seq); }
  std::size_t width() const { return static_cast<std::size_t>(heads) * 64; }
};

std::string text(const RotaryShape& s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.seq) + "x" + std::to_string(s.heads);
}

// The packed rows with q and k turned; v as it was.
std::vector<double> turned(const RotaryShape& s, std::vector<double> rows, bool is_inverse) {
  for (std::size_t token = 0; token < s.tokens(); ++token) {
    for (std::size_t head = 0; head < 2 * static_cast<std::size_t>(s.heads); ++head) {
      for (std::size_t i = 0; i < 32; ++i) {
        double angle = static_cast<double>(token % static_cast<std::size_t>(s.seq)) *
                       std::pow(10000.0, -static_cast<double>(i) / 32.0);
        if (is_inverse) angle = -angle;
        double& low = rows[token * 3 * s.width() + head * 64 + i];
        double& high = rows[token * 3 * s.width() + head * 64 + i + 32];
        const double old = low;
        low = old * std::cos(angle) - high * std::sin(angle);
        high = high * std::cos(angle) + old * std::sin(angle);
      }
    }
  }
  return rows;
}

void check_rotary_shape(Suite& suite, const RotaryShape& s) {
  Random random(static_cast<std::uint64_t>(s.seq + s.heads));
  const auto rows = random.normals(s.tokens() * 3 * s.width());
  const Buffer<float> table(static_cast<std::size_t>(s.seq) * 64);
  ZP_REQUIRE(cuda::rotary_table(table.data(), s.seq, 10000.0, nullptr));
  const auto stride = static_cast<std::int64_t>(3 * s.width());
  for (const bool is_inverse : {false, true}) {
    const auto want = turned(s, widened(rows), is_inverse);
    const std::string name = is_inverse ? "rotary inverse" : "rotary";
    const Buffer<Bf16> in_place(rows);
    ZP_REQUIRE(cuda::rotary({in_place.data(), in_place.data(), table.data(), s.batch, s.seq,
                             s.heads, stride, stride, is_inverse},
                            nullptr));
    compare(suite, {name + " in place", text(s), 3e-3}, in_place, want);
    const Buffer<Bf16> from(rows);
    const Buffer<Bf16> to(s.tokens() * 2 * s.width());
    ZP_REQUIRE(cuda::rotary({from.data(), to.data(), table.data(), s.batch, s.seq, s.heads, stride,
                             static_cast<std::int64_t>(2 * s.width()), is_inverse},
                            nullptr));
    std::vector<double> narrow;
    for (std::size_t token = 0; token < s.tokens(); ++token) {
      const auto* first = want.data() + token * 3 * s.width();
      narrow.insert(narrow.end(), first, first + 2 * s.width());
    }
    compare(suite, {name + " out of place", text(s), 3e-3}, to, narrow);
  }
}

void time_rotary(int seq) {
  const RotaryShape s{8, seq, 16};
  constexpr std::size_t kSets = 3;
  const std::size_t count = s.tokens() * 3 * s.width();
  Buffer<Bf16> rows(count * kSets);
  rows.fill(5);
  const Buffer<float> table(static_cast<std::size_t>(seq) * 64);
  ZP_REQUIRE(cuda::rotary_table(table.data(), seq, 10000.0, nullptr));
  const auto stride = static_cast<std::int64_t>(3 * s.width());
  time({"rotary", text(s), static_cast<double>(s.tokens() * 2 * s.width()) * 4.0}, [&](int set) {
    Bf16* at = rows.at(static_cast<std::size_t>(set) % kSets * count);
    ZP_REQUIRE(cuda::rotary({at, at, table.data(), s.batch, s.seq, s.heads, stride, stride, false},
                            nullptr));
  });
}

double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

double gelu_slope(double x) {
  const double c = std::sqrt(2.0 / M_PI);
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3.0 * 0.044715 * x * x);
}

void check_gelu_size(Suite& suite, std::size_t count) {
  Random random(count);
  auto x = random.normals(count, 2.0);
  x[0] = to_bf16(90.0F);  // past where a square of e^x is finite
  if (count > 1) x[1] = to_bf16(-90.0F);
  const auto dy = random.normals(count);
  std::vector<double> want(count);
  std::vector<double> want_grad(count);
  for (std::size_t i = 0; i < count; ++i) {
    want[i] = gelu(from_bf16(x[i]));
    want_grad[i] = from_bf16(dy[i]) * gelu_slope(from_bf16(x[i]));
  }
  const Buffer<Bf16> d_x(x), d_dy(dy), y(count), dx(count);
  const auto elements = static_cast<std::int64_t>(count);
  ZP_REQUIRE(cuda::gelu_tanh_forward(d_x.data(), y.data(), elements, nullptr));
  ZP_REQUIRE(cuda::gelu_tanh_backward({d_dy.data(), d_x.data(), dx.data(), elements}, nullptr));
  compare(suite, {"gelu forward", std::to_string(count), 3e-3}, y, want);
  compare(suite, {"gelu backward", std::to_string(count), 3e-3}, dx, want_grad);
}

void time_gelu(std::size_t count) {
  constexpr std::size_t kSets = 3;
  Buffer<Bf16> x(count * kSets), dy(count * kSets);
  const Buffer<Bf16> y(count * kSets);
  x.fill(6);
  dy.fill(7);
  const auto elements = static_cast<std::int64_t>(count);
  const auto bytes = static_cast<double>(count) * 2.0;
  time({"gelu forward", std::to_string(count), 2.0 * bytes}, [&](int set) {
    const std::size_t at = static_cast<std::size_t>(set) % kSets * count;
    ZP_REQUIRE(cuda::gelu_tanh_forward(x.at(at), y.at(at), elements, nullptr));
  });
  time({"gelu backward", std::to_string(count), 3.0 * bytes}, [&](int set) {
    const std::size_t at = static_cast<std::size_t>(set) % kSets * count;
    ZP_REQUIRE(cuda::gelu_tanh_backward({dy.at(at), x.at(at), y.at(at), elements}, nullptr));
  });
}

template <class T>
cuda::Strided dense(const Buffer<T>& of, DType dtype) {
  cuda::Strided out;
  out.data = of.data();
  out.dtype = dtype;
  out.elements = static_cast<std::int64_t>(of.size());
  out.sizes[0] = out.elements;
  out.strides[0] = 1;
  return out;
}

// Gradients and low-precision weights in bfloat16, the rest in float32: 28 bytes an element.
struct AdamState {
  explicit AdamState(std::size_t count)
      : master(count), m(count), v(count), grad(count), weight(count) {}
  cuda::AdamTensors tensors() const {
    return {dense(master, DType::float32), dense(grad, DType::bfloat16), dense(m, DType::float32),
            dense(v, DType::float32), dense(weight, DType::bfloat16)};
  }
  Buffer<float> master, m, v;
  Buffer<Bf16> grad;
  Buffer<Bf16> weight;
};

AdamRule some_adam_rule() {
  AdamUpdate update;
  TensorImpl low, wide;
  low.dtype = DType::bfloat16;
  wide.dtype = DType::float32;
  update.parameter = update.exp_avg = update.exp_avg_sq = {&wide, 0, 1};
  update.grad = update.copy = {&low, 0, 1};
  update.step = 5;
  update.options = {.lr = 1e-4, .weight_decay = 0.1, .is_decay_decoupled = true};
  return adam_rule(update);
}

// What the update changed.
std::vector<double> change(const Buffer<float>& after, const std::vector<float>& before) {
  std::vector<double> values = widened(after.download());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= before[i];
  return values;
}

// That the exact one is right is shown bit by bit by tests/engine/runtime/cuda_world_test.cpp; the
// fast one beside it, as far as parameters are rounded.
void check_fast_adam(Suite& suite, std::size_t count) {
  Random random(count);
  const auto master = random.floats(count, 0.02);
  const auto m = random.floats(count, 1e-3);
  auto v = random.floats(count, 1e-3);
  for (float& of : v) of *= of;
  const auto grad = random.normals(count, 1e-3);
  AdamState exact(count), fast(count);
  for (AdamState* state : {&exact, &fast}) {
    state->master.upload(master);
    state->m.upload(m);
    state->v.upload(v);
    state->grad.upload(grad);
  }
  const AdamRule rule = some_adam_rule();
  ZP_REQUIRE(cuda::launch_adam(nullptr, exact.tensors(), rule));
  expect(suite, "fast adam fits", std::to_string(count),
         cuda::launch_fast_adam(nullptr, fast.tensors(), rule));
  ZP_REQUIRE(cudaGetLastError());
  const std::string shape = std::to_string(count);
  compare(suite, {"fast adam, parameters", shape, 1e-4}, change(fast.master, master),
          change(exact.master, master));
  compare(suite, {"fast adam, exp_avg", shape, 1e-6}, fast.m, widened(exact.m.download()));
  compare(suite, {"fast adam, exp_avg_sq", shape, 1e-6}, fast.v, widened(exact.v.download()));
  compare(suite, {"fast adam, copy", shape, 1e-3}, fast.weight, widened(exact.weight.download()));
}

void time_adam(std::size_t count) {
  AdamState state(count);
  state.master.fill(1);
  state.m.fill(2);
  ZP_REQUIRE(cudaMemset(state.v.data(), 0, count * sizeof(float)));
  state.grad.fill(3);
  const cuda::AdamTensors tensors = state.tensors();
  const AdamRule rule = some_adam_rule();
  const double bytes = 28.0 * static_cast<double>(count);
  time({"adam with its copy", std::to_string(count), bytes, 0.0, 2},
       [&](int) { ZP_REQUIRE(cuda::launch_adam(nullptr, tensors, rule)); });
  time({"fast adam with its copy", std::to_string(count), bytes, 0.0, 2},
       [&](int) { cuda::launch_fast_adam(nullptr, tensors, rule); });
}

}  // namespace

void check_rotary(Suite& suite) {
  if (!suite.wants("rotary")) return;
  check_rotary_shape(suite, {2, 5, 1});
  check_rotary_shape(suite, {1, 33, 3});
  if (suite.is_small) return;
  check_rotary_shape(suite, {2, 1024, 16});
  if (!suite.is_timing) return;
  time_rotary(1024);
  time_rotary(512);
}

void check_gelu(Suite& suite) {
  if (!suite.wants("gelu")) return;
  for (const std::size_t count : {1U, 7U, 8U, 4099U}) check_gelu_size(suite, count);
  if (suite.is_small) return;
  check_gelu_size(suite, 1048576 + 3);
  if (!suite.is_timing) return;
  time_gelu(std::size_t{8192} * 2048);
  time_gelu(std::size_t{4096} * 2048);
}

void check_adam(Suite& suite) {
  if (!suite.wants("adam")) return;
  for (const std::size_t count : {4U, 4U * 4099U}) check_fast_adam(suite, count);
  if (suite.is_small || !suite.is_timing) return;
  time_adam(266912768);
  time_adam(266912768 / 4);
}

}  // namespace zeroproof::check
