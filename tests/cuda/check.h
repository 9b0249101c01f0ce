#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::check {

using Bf16 = std::uint16_t;

// What the command line asks for, and the count of what failed.
struct Suite {
  std::string only;       // part of a case's name, empty: all
  bool is_timing = true;  // after the comparisons, the M267 shapes
  bool is_small = false;  // small shapes alone, for compute-sanitizer
  int failures = 0;

  bool wants(std::string_view name) const;
};

// Prints the call and ends the program unless `error` is success.
void require(cudaError_t error, const char* call, int line);
#define ZP_REQUIRE(call) ::zeroproof::check::require((call), #call, __LINE__)

float from_bf16(Bf16 bits);
Bf16 to_bf16(float value);     // to nearest, ties to even
double rounded(double value);  // through bf16

// Numbers from a seed, the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2654435769U + 1) {}
  std::uint64_t bits();
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  double normal();
  std::vector<Bf16> normals(std::size_t count, double deviation = 1.0);
  std::vector<float> floats(std::size_t count, double deviation = 1.0);
  std::vector<std::int32_t> ids(std::size_t count, int limit);

 private:
  std::uint64_t state_;
};

// Device memory between two guards, poisoned when made: bytes of ones are NaNs.
class Memory {
 public:
  explicit Memory(std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data() const { return data_ + kGuard; }
  std::size_t bytes() const { return bytes_; }
  void poison();
  bool is_guard_intact() const;
  // Repeats a short random pattern: for timings.
  void fill(std::uint64_t seed, bool is_float);

 private:
  static constexpr std::size_t kGuard = 512;
  char* data_ = nullptr;
  std::size_t bytes_;
};

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : memory_(count * sizeof(T)), count_(count) {}
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) { upload(values); }
  T* data() const { return static_cast<T*>(memory_.data()); }
  T* at(std::size_t index) const { return data() + index; }
  std::size_t size() const { return count_; }
  void upload(const std::vector<T>& values) {
    ZP_REQUIRE(cudaMemcpy(data(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> download() const {
    std::vector<T> values(count_);
    ZP_REQUIRE(cudaMemcpy(values.data(), data(), count_ * sizeof(T), cudaMemcpyDeviceToHost));
    ZP_REQUIRE(memory_.is_guard_intact() ? cudaSuccess : cudaErrorIllegalAddress);
    return values;
  }
  void poison() { memory_.poison(); }
  void fill(std::uint64_t seed) { memory_.fill(seed, sizeof(T) == 4); }

 private:
  Memory memory_;
  std::size_t count_;
};

std::vector<double> widened(const std::vector<Bf16>& values);
std::vector<double> widened(const std::vector<float>& values);

struct Case {
  std::string name;
  std::string shape;
  double relative_max;  // of |got - want| / |want|, over all elements
};

// Prints `name shape relative_error max_abs ok|FAIL`. Not finite never passes.
void compare(Suite& suite, const Case& what, const std::vector<double>& got,
             const std::vector<double>& want);
template <class T>
void compare(Suite& suite, const Case& what, const Buffer<T>& got,
             const std::vector<double>& want) {
  compare(suite, what, widened(got.download()), want);
}
// Prints ok or FAIL for a statement.
void expect(Suite& suite, const std::string& name, const std::string& shape, bool is_true);

// Median of 20 samples after warm-up, each `launches` calls with the set 0, 1, ... in turn between
// two events. Prints ms a call, the rate achieved, and the floor: bytes at 4.3 TB/s or flops at 790
// TFLOP/s, the longer of the two.
struct Timing {
  std::string name;
  std::string shape;
  double bytes;
  double flops = 0.0;
  int launches = 8;
};
double time(const Timing& what, const std::function<void(int set)>& launch);

// One for each source file beside this.
void check_rms_norm(Suite& suite);
void check_rotary(Suite& suite);
void check_gelu(Suite& suite);
void check_cross_entropy(Suite& suite);
void check_embedding(Suite& suite);
void check_adam(Suite& suite);
void check_gemm(Suite& suite);
void check_attention(Suite& suite);
void check_rank_sum(Suite& suite);

}  // namespace zeroproof::check
