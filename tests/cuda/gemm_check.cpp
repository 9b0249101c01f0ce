#include "engine/runtime/cuda/fused/gemm.h"

#include <cmath>
#include <cstdio>

#include "tests/cuda/check.h"

namespace zeroproof::check {
namespace {

using cuda::GemmEpilogue;
using cuda::GemmShape;
using cuda::GemmType;

std::string text(const GemmShape& s) {
  std::string out = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
  if (s.is_a_transposed) out += " ta";
  if (s.is_b_transposed) out += " tb";
  if (s.is_accumulating) out += " acc";
  if (s.epilogue == GemmEpilogue::gelu_aux) out += " gelu";
  if (s.epilogue == GemmEpilogue::gelu_grad) out += " dgelu";
  out += s.inputs == GemmType::fp32 ? " fp32" : s.inputs == GemmType::fp16 ? " fp16" : " bf16";
  if (s.output != s.inputs) out += ">fp32";
  return out;
}

double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

double gelu_slope(double x) {
  const double c = std::sqrt(2.0 / M_PI);
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3.0 * 0.044715 * x * x);
}

double from_fp16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double value = exponent == 0    ? std::ldexp(fraction, -14)
                       : exponent == 31 ? NAN
                                        : std::ldexp(1.0 + fraction, exponent - 15);
  return (bits & 0x8000U) != 0 ? -value : value;
}

// Elements of one type on the device, and what they are.
class Matrix {
 public:
  Matrix(GemmType type, std::int64_t count)
      : type_(type), memory_(static_cast<std::size_t>(count) * (type == GemmType::fp32 ? 4 : 2)) {}

  // Values that every type holds exactly: k / 64, |k| < 256, times `scale`, a power of two.
  void randomise(Random& random, double scale = 1.0) {
    values_.clear();
    std::vector<float> wide(elements());
    std::vector<std::uint16_t> narrow(elements());
    for (std::size_t i = 0; i < elements(); ++i) {
      const int k = static_cast<int>(random.bits() % 511) - 255;
      values_.push_back(k / 64.0 * scale);
      wide[i] = static_cast<float>(values_.back());
      narrow[i] = type_ == GemmType::fp16 ? to_fp16(values_.back()) : to_bf16(wide[i]);
    }
    const void* source = type_ == GemmType::fp32 ? static_cast<const void*>(wide.data())
                                                 : static_cast<const void*>(narrow.data());
    ZP_REQUIRE(cudaMemcpy(memory_.data(), source, memory_.bytes(), cudaMemcpyHostToDevice));
  }
  void fill(std::uint64_t seed) { memory_.fill(seed, type_ == GemmType::fp32); }

  std::vector<double> download() const {
    if (!memory_.is_guard_intact()) return {};
    if (type_ == GemmType::fp32) {
      std::vector<float> wide(elements());
      ZP_REQUIRE(cudaMemcpy(wide.data(), memory_.data(), memory_.bytes(), cudaMemcpyDeviceToHost));
      return widened(wide);
    }
    std::vector<std::uint16_t> narrow(elements());
    ZP_REQUIRE(cudaMemcpy(narrow.data(), memory_.data(), memory_.bytes(), cudaMemcpyDeviceToHost));
    if (type_ == GemmType::bf16) return widened(narrow);
    std::vector<double> out;
    for (const std::uint16_t bits : narrow) out.push_back(from_fp16(bits));
    return out;
  }
  void* data() const { return memory_.data(); }
  const std::vector<double>& values() const { return values_; }

 private:
  std::size_t elements() const { return memory_.bytes() / (type_ == GemmType::fp32 ? 4 : 2); }
  // Eight significant bits: exact.
  static std::uint16_t to_fp16(double value) {
    if (value == 0.0) return 0;
    const int exponent = std::ilogb(value);
    const double fraction = std::abs(value) / std::ldexp(1.0, exponent) - 1.0;
    return static_cast<std::uint16_t>((value < 0.0 ? 0x8000 : 0) | (exponent + 15) << 10 |
                                      static_cast<int>(fraction * 1024.0));
  }

  GemmType type_;
  Memory memory_;
  std::vector<double> values_;
};

// op(X)[row, column] of a row-major X whose op has `columns` columns (and `rows` rows).
double at(const Matrix& x, bool is_transposed, std::int64_t rows, std::int64_t columns,
          std::int64_t row, std::int64_t column) {
  const std::int64_t index = is_transposed ? column * rows + row : row * columns + column;
  return x.values()[static_cast<std::size_t>(index)];
}

struct Problem {
  explicit Problem(const GemmShape& s)
      : shape(s),
        a(s.inputs, s.m * s.k),
        b(s.inputs, s.k * s.n),
        c(s.output, s.m * s.n),
        aux(s.inputs, s.epilogue == GemmEpilogue::none ? 1 : s.m * s.n) {}

  cuda::GemmOperands operands() const {
    return {a.data(), b.data(), c.data(),
            shape.epilogue == GemmEpilogue::none ? nullptr : aux.data()};
  }

  GemmShape shape;
  Matrix a, b, c, aux;
};

void check_problem(Suite& suite, cuda::GemmPlans& plans, const GemmShape& s) {
  Random random(static_cast<std::uint64_t>(s.m + s.n * 3 + s.k * 7));
  Problem p(s);
  // Where GELU is not straight.
  const double scale = s.epilogue == GemmEpilogue::gelu_aux ? 0.25 : 1.0;
  p.a.randomise(random, scale);
  p.b.randomise(random, scale);
  if (s.is_accumulating) p.c.randomise(random);
  if (s.epilogue == GemmEpilogue::gelu_grad) p.aux.randomise(random);
  std::vector<double> want, want_aux;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = 0.0;
      for (std::int64_t l = 0; l < s.k; ++l) {
        sum +=
            at(p.a, s.is_a_transposed, s.m, s.k, i, l) * at(p.b, s.is_b_transposed, s.k, s.n, l, j);
      }
      const auto index = static_cast<std::size_t>(i * s.n + j);
      want_aux.push_back(sum);
      if (s.is_accumulating) sum += p.c.values()[index];
      if (s.epilogue == GemmEpilogue::gelu_aux) sum = gelu(sum);
      if (s.epilogue == GemmEpilogue::gelu_grad) sum *= gelu_slope(p.aux.values()[index]);
      want.push_back(sum);
    }
  }
  try {
    plans.run(s, p.operands(), nullptr);
  } catch (const std::exception& error) {
    ++suite.failures;
    std::printf("%-30s %-26s FAIL: %s\n", "gemm", text(s).c_str(), error.what());
    return;
  }
  const double limit = s.output == GemmType::fp32 ? 2e-6 : 3e-3;
  compare(suite, {"gemm", text(s), limit}, p.c.download(), want);
  if (s.epilogue == GemmEpilogue::gelu_aux) {
    compare(suite, {"gemm aux", text(s), limit}, p.aux.download(), want_aux);
  }
}

// One use each of a layer, timed: forward, input gradient, weight gradient.
struct Layer {
  const char* name;
  std::int64_t in;
  std::int64_t out;
  int count;  // in M267
};

double time_problem(Suite& suite, cuda::GemmPlans& plans, const char* name, const GemmShape& s) {
  Problem p(s);
  p.a.fill(31);
  p.b.fill(32);
  p.aux.fill(33);
  double ms = 0.0;
  try {
    plans.run(s, p.operands(), nullptr);
    const auto m = static_cast<double>(s.m);
    const auto n = static_cast<double>(s.n);
    const auto k = static_cast<double>(s.k);
    ms = time({name, text(s), 2.0 * (m * k + k * n + m * n), 2.0 * m * n * k, 4},
              [&](int) { plans.run(s, p.operands(), nullptr); });
  } catch (const std::exception& error) {
    ++suite.failures;
    std::printf("%-30s %-26s FAIL: %s\n", name, text(s).c_str(), error.what());
    return 0.0;
  }
  const auto choice = plans.choice(s);
  std::printf("     candidate %d of %d, %.4f ms; the first %.4f ms\n", choice.candidate,
              choice.candidates, static_cast<double>(choice.best_ms),
              static_cast<double>(choice.first_ms));
  return ms;
}

void time_model(Suite& suite, cuda::GemmPlans& plans, std::int64_t tokens) {
  constexpr Layer kLayers[] = {{"wqkv", 1024, 3072, 24},
                               {"wo", 1024, 1024, 24},
                               {"w1", 1024, 2048, 24},
                               {"w2", 2048, 1024, 24},
                               {"lm_head", 1024, 32000, 1}};
  double total = 0.0;
  for (const Layer& layer : kLayers) {
    const std::string name = std::string("gemm ") + layer.name;
    GemmShape forward{tokens, layer.out, layer.in};
    forward.is_b_transposed = true;
    GemmShape dweight{layer.out, layer.in, tokens};
    dweight.is_a_transposed = true;
    const GemmShape dinput{tokens, layer.in, layer.out};
    double ms = 0.0;
    for (const GemmShape& shape : {forward, dinput, dweight}) {
      ms += time_problem(suite, plans, name.c_str(), shape);
    }
    total += ms * layer.count;
  }
  std::printf("gemm total of M267, %lld tokens: %.3f ms (floor measured in torch: 15.95 / 8.3)\n",
              static_cast<long long>(tokens), total);
  GemmShape gelu_aux{tokens, 2048, 1024};
  gelu_aux.is_b_transposed = true;
  gelu_aux.epilogue = GemmEpilogue::gelu_aux;
  time_problem(suite, plans, "gemm w1 + gelu_aux", gelu_aux);
  GemmShape gelu_grad{tokens, 2048, 1024};
  gelu_grad.epilogue = GemmEpilogue::gelu_grad;
  time_problem(suite, plans, "gemm w2 dinput + dgelu", gelu_grad);
}

}  // namespace

void check_gemm(Suite& suite) {
  if (!suite.wants("gemm")) return;
  const Buffer<char> workspace(std::size_t{64} << 20);
  cuda::GemmOptions options;
  options.workspace = workspace.data();
  options.workspace_bytes = workspace.size();
  for (const bool is_first_taken : {true, false}) {
    options.is_first_taken = is_first_taken;
    cuda::GemmPlans plans(options);
    for (const GemmType type : {GemmType::bf16, GemmType::fp16, GemmType::fp32}) {
      for (const int transposed : {0, 1, 2, 3}) {
        GemmShape s{72, 40, 104};
        s.inputs = s.output = type;
        s.is_a_transposed = transposed % 2 == 1;
        s.is_b_transposed = transposed / 2 == 1;
        check_problem(suite, plans, s);
        s.is_accumulating = true;
        check_problem(suite, plans, s);
      }
    }
    GemmShape s{136, 256, 64};
    s.is_b_transposed = true;
    s.epilogue = GemmEpilogue::gelu_aux;
    check_problem(suite, plans, s);
    s.is_b_transposed = false;
    s.epilogue = GemmEpilogue::gelu_grad;
    check_problem(suite, plans, s);
    GemmShape wide{48, 64, 136};
    wide.is_a_transposed = true;
    wide.output = GemmType::fp32;
    check_problem(suite, plans, wide);
    check_problem(suite, plans, {8, 8, 8});
    GemmShape odd{33, 17, 21};
    odd.is_b_transposed = true;
    check_problem(suite, plans, odd);
    odd.inputs = odd.output = GemmType::fp32;
    check_problem(suite, plans, odd);
    if (!suite.is_small) check_problem(suite, plans, {512, 264, 1000});
  }
  if (suite.is_small || !suite.is_timing) return;
  options.is_first_taken = false;
  cuda::GemmPlans plans(options);
  time_model(suite, plans, 8192);
  time_model(suite, plans, 4096);
}

}  // namespace zeroproof::check
