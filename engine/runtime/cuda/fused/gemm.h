#pragma once

#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace zeroproof::cuda {

enum class GemmType : std::uint8_t { bf16, fp16, fp32 };

// What cuBLASLt computes on the way out. `aux` has the shape of C.
enum class GemmEpilogue : std::uint8_t {
  none,
  gelu_aux,   // aux = product, C = gelu_tanh(product)
  gelu_grad,  // C = product * gelu_tanh'(aux)
};

// Row-major C[m, n] = op(A)[m, k] op(B)[k, n] (+ C when accumulating), all dense: A is stored
// [m, k], or [k, m] when transposed; B is stored [k, n], or [n, k] when transposed. So for a
// linear layer with weight [out, in]: forward is_b_transposed, input gradient neither, weight
// gradient is_a_transposed. Sums in fp32; fp32 operands are not rounded to tf32.
struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool is_a_transposed = false;
  bool is_b_transposed = false;
  bool is_accumulating = false;
  GemmType inputs = GemmType::bf16;
  GemmType output = GemmType::bf16;  // that of the inputs, or fp32
  GemmEpilogue epilogue = GemmEpilogue::none;

  friend auto operator<=>(const GemmShape&, const GemmShape&) = default;
};

struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  void* aux = nullptr;
};

// The workspace must outlive the plans and is used by one stream at a time.
struct GemmOptions {
  void* workspace = nullptr;  // of the device, 256-byte aligned
  std::size_t workspace_bytes = std::size_t{32} << 20;
  int candidates = 12;          // of the heuristic's answers, timed on first use
  bool is_first_taken = false;  // no timing: two runs take the same algorithm
};

// Plans of cuBLASLt, one a shape and alignment of the operands, made on first use on the current
// device. The first use of a shape times the candidates on the real operands (their results go to a
// buffer of its own, so C is written once), and waits for the device; every later one only queues.
// A shape first met while the stream is captured takes the first candidate. For one host thread;
// throws RuntimeFault.
class GemmPlans {
 public:
  explicit GemmPlans(const GemmOptions& options);
  ~GemmPlans();
  GemmPlans(const GemmPlans&) = delete;
  GemmPlans& operator=(const GemmPlans&) = delete;

  void run(const GemmShape& shape, const GemmOperands& operands, cudaStream_t stream);

  // How the choice for a shape came out: which candidate, of how many, and its time (0: not timed).
  struct Choice {
    int candidate = 0;
    int candidates = 0;
    float best_ms = 0.0F;
    float first_ms = 0.0F;
  };
  Choice choice(const GemmShape& shape) const;

 private:
  class Plan;
  class Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace zeroproof::cuda
