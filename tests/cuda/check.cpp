#include "tests/cuda/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace zeroproof::check {
namespace {

constexpr double kBytesPerSecond = 4.3e12;
constexpr double kFlopsPerSecond = 790e12;

}  // namespace

bool Suite::wants(std::string_view name) const {
  return name.find(only) != name.npos;
}

void require(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  std::printf("FAIL line %d: %s: %s\n", line, call, cudaGetErrorString(error));
  std::fflush(stdout);
  std::exit(2);
}

float from_bf16(Bf16 bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value = 0.0F;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

Bf16 to_bf16(float value) {
  std::uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  if (std::isnan(value)) return 0x7fff;
  word += 0x7fffU + (word >> 16 & 1U);
  return static_cast<Bf16>(word >> 16);
}

double rounded(double value) {
  return from_bf16(to_bf16(static_cast<float>(value)));
}

std::uint64_t Random::bits() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
  z = (z ^ z >> 27) * 0x94d049bb133111ebU;
  return z ^ z >> 31;
}

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

std::vector<Bf16> Random::normals(std::size_t count, double deviation) {
  std::vector<Bf16> values(count);
  for (Bf16& value : values) value = to_bf16(static_cast<float>(normal() * deviation));
  return values;
}

std::vector<float> Random::floats(std::size_t count, double deviation) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(normal() * deviation);
  return values;
}

std::vector<std::int32_t> Random::ids(std::size_t count, int limit) {
  std::vector<std::int32_t> values(count);
  for (std::int32_t& value : values) {
    value = static_cast<std::int32_t>(bits() % static_cast<std::uint64_t>(limit));
  }
  return values;
}

Memory::Memory(std::size_t bytes) : bytes_(bytes) {
  ZP_REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data_), bytes + 2 * kGuard));
  ZP_REQUIRE(cudaMemset(data_, 0xab, bytes + 2 * kGuard));
  poison();
}

Memory::~Memory() {
  cudaFree(data_);
}

void Memory::poison() {
  ZP_REQUIRE(cudaMemset(data(), 0xff, bytes_));
}

bool Memory::is_guard_intact() const {
  std::vector<unsigned char> guards(2 * kGuard);
  ZP_REQUIRE(cudaMemcpy(guards.data(), data_, kGuard, cudaMemcpyDeviceToHost));
  ZP_REQUIRE(
      cudaMemcpy(guards.data() + kGuard, data_ + kGuard + bytes_, kGuard, cudaMemcpyDeviceToHost));
  return std::all_of(guards.begin(), guards.end(), [](unsigned char c) { return c == 0xab; });
}

void Memory::fill(std::uint64_t seed, bool is_float) {
  Random random(seed);
  constexpr std::size_t kPattern = 262147;  // prime: no row repeats another
  std::vector<char> pattern;
  if (is_float) {
    const std::vector<float> values = random.floats(kPattern);
    pattern.resize(values.size() * sizeof(float));
    std::memcpy(pattern.data(), values.data(), pattern.size());
  } else {
    const std::vector<Bf16> values = random.normals(kPattern);
    pattern.resize(values.size() * sizeof(Bf16));
    std::memcpy(pattern.data(), values.data(), pattern.size());
  }
  auto* bytes = static_cast<char*>(data());
  std::size_t done = std::min(pattern.size(), bytes_);
  ZP_REQUIRE(cudaMemcpy(bytes, pattern.data(), done, cudaMemcpyHostToDevice));
  while (done < bytes_) {
    const std::size_t more = std::min(done, bytes_ - done);
    ZP_REQUIRE(cudaMemcpy(bytes + done, bytes, more, cudaMemcpyDeviceToDevice));
    done += more;
  }
}

std::vector<double> widened(const std::vector<Bf16>& values) {
  std::vector<double> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(), from_bf16);
  return out;
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

void compare(Suite& suite, const Case& what, const std::vector<double>& got,
             const std::vector<double>& want) {
  double difference = 0.0;
  double length = 0.0;
  double max = 0.0;
  bool is_finite = got.size() == want.size();
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double error = got[i] - want[i];
    is_finite = is_finite && std::isfinite(got[i]) && std::isfinite(want[i]);
    difference += error * error;
    length += want[i] * want[i];
    max = std::max(max, std::abs(error));
  }
  const double relative = length > 0.0 ? std::sqrt(difference / length) : std::sqrt(difference);
  const bool is_ok = is_finite && relative <= what.relative_max;
  if (!is_ok) ++suite.failures;
  std::printf("%-30s %-26s %.2e %.2e %s%s\n", what.name.c_str(), what.shape.c_str(), relative, max,
              is_ok ? "ok" : "FAIL", is_finite ? "" : " (not finite or a wrong size)");
  std::fflush(stdout);
}

void expect(Suite& suite, const std::string& name, const std::string& shape, bool is_true) {
  if (!is_true) ++suite.failures;
  std::printf("%-30s %-26s %-17s %s\n", name.c_str(), shape.c_str(), "", is_true ? "ok" : "FAIL");
  std::fflush(stdout);
}

double time(const Timing& what, const std::function<void(int set)>& launch) {
  constexpr int kSamples = 20;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  ZP_REQUIRE(cudaEventCreate(&begin));
  ZP_REQUIRE(cudaEventCreate(&end));
  std::vector<float> times;
  for (int sample = -3; sample < kSamples; ++sample) {
    ZP_REQUIRE(cudaEventRecord(begin));
    for (int i = 0; i < what.launches; ++i) launch(i);
    ZP_REQUIRE(cudaEventRecord(end));
    ZP_REQUIRE(cudaEventSynchronize(end));
    float ms = 0.0F;
    ZP_REQUIRE(cudaEventElapsedTime(&ms, begin, end));
    if (sample >= 0) times.push_back(ms / static_cast<float>(what.launches));
  }
  ZP_REQUIRE(cudaEventDestroy(begin));
  ZP_REQUIRE(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  const double ms = (times[kSamples / 2 - 1] + times[kSamples / 2]) / 2.0;
  const double memory_ms = what.bytes / kBytesPerSecond * 1e3;
  const double arithmetic_ms = what.flops / kFlopsPerSecond * 1e3;
  const double floor_ms = std::max(memory_ms, arithmetic_ms);
  std::printf("time %-28s %-26s %8.4f ms  min %8.4f  ", what.name.c_str(), what.shape.c_str(), ms,
              static_cast<double>(times.front()));
  if (arithmetic_ms > memory_ms) {
    std::printf("%7.1f TFLOP/s", what.flops / ms / 1e9);
  } else {
    std::printf("%7.0f GB/s   ", what.bytes / ms / 1e6);
  }
  std::printf("  floor %8.4f ms  x%.2f\n", floor_ms, floor_ms > 0.0 ? ms / floor_ms : 0.0);
  std::fflush(stdout);
  return ms;
}

}  // namespace zeroproof::check
