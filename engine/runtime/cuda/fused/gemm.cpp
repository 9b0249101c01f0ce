#include "engine/runtime/cuda/fused/gemm.h"

#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw RuntimeFault(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusString(status));
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw RuntimeFault(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
}

cudaDataType_t data_type(GemmType type) {
  switch (type) {
    case GemmType::bf16:
      return CUDA_R_16BF;
    case GemmType::fp16:
      return CUDA_R_16F;
    case GemmType::fp32:
      return CUDA_R_32F;
  }
  return CUDA_R_32F;
}

std::size_t bytes_of(GemmType type) {
  return type == GemmType::fp32 ? 4 : 2;
}

std::string describe(const GemmShape& s) {
  return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
         (s.is_a_transposed ? " ta" : "") + (s.is_b_transposed ? " tb" : "");
}

// A device buffer for the timing of a plan.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "scratch of a timing"); }
  ~Scratch() { cudaFree(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// A column-major matrix as cuBLASLt sees it.
class Layout {
 public:
  Layout(GemmType type, std::int64_t rows, std::int64_t columns) {
    check(cublasLtMatrixLayoutCreate(&layout_, data_type(type), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), rows),
          "a layout");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Preference {
 public:
  Preference(std::size_t workspace_bytes, std::uint32_t alignment) {
    check(cublasLtMatmulPreferenceCreate(&preference_), "a preference");
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
  }
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value),
          "an attribute of a preference");
  }

  cublasLtMatmulPreference_t preference_ = nullptr;
};

// What cuBLASLt may assume of these pointers: algorithms that move 16 bytes at once need 16.
std::uint32_t alignment_of(const GemmOperands& operands) {
  std::uintptr_t bits = 256;
  for (const void* pointer : {operands.a, operands.b, static_cast<const void*>(operands.c),
                              static_cast<const void*>(operands.aux)}) {
    bits |= reinterpret_cast<std::uintptr_t>(pointer);
  }
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

}  // namespace

// Row-major C is column-major C^T [n, m] = op(B)^T [n, k] op(A)^T [k, m]: cuBLASLt's first operand
// is B and its second A. A dense row-major matrix [r, c] is column-major [c, r].
class GemmPlans::Plan {
 public:
  Plan(cublasLtHandle_t handle, const GemmShape& shape, const GemmOptions& options)
      : handle_(handle),
        shape_(shape),
        options_(options),
        first_(shape.inputs, shape.is_b_transposed ? shape.k : shape.n,
               shape.is_b_transposed ? shape.n : shape.k),
        second_(shape.inputs, shape.is_a_transposed ? shape.m : shape.k,
                shape.is_a_transposed ? shape.k : shape.m),
        result_(shape.output, shape.n, shape.m) {
    check(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "an operation");
    set_operation(CUBLASLT_MATMUL_DESC_TRANSA, shape.is_b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set_operation(CUBLASLT_MATMUL_DESC_TRANSB, shape.is_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set_epilogue();
  }
  ~Plan() { cublasLtMatmulDescDestroy(operation_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void choose(const GemmOperands& operands, cudaStream_t stream) {
    set_aux(operands.aux);
    find_candidates(alignment_of(operands));
    choice_.candidates = static_cast<int>(candidates_.size());
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &capture), "whether a stream is captured");
    const bool is_timed = !options_.is_first_taken && capture == cudaStreamCaptureStatusNone &&
                          candidates_.size() > 1;
    if (is_timed) time_candidates(operands, stream);
  }

  void run(const GemmOperands& operands, cudaStream_t stream) {
    set_aux(operands.aux);
    check(launch(chosen(), operands, operands.c, stream), describe(shape_).c_str());
  }

  const Choice& choice() const { return choice_; }

 private:
  template <class T>
  void set_operation(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value),
          "an attribute of an operation");
  }

  void set_epilogue() {
    if (shape_.epilogue == GemmEpilogue::none) return;
    set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE, shape_.epilogue == GemmEpilogue::gelu_aux
                                                     ? CUBLASLT_EPILOGUE_GELU_AUX
                                                     : CUBLASLT_EPILOGUE_DGELU);
    set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape_.n);
    set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, data_type(shape_.inputs));
  }

  void set_aux(void* aux) {
    if (shape_.epilogue == GemmEpilogue::none) return;
    if (aux == nullptr) throw RuntimeFault("a GELU epilogue without its aux buffer");
    set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
  }

  void find_candidates(std::uint32_t alignment) {
    const Preference preference(options_.workspace_bytes, alignment);
    std::vector<cublasLtMatmulHeuristicResult_t> found(
        static_cast<std::size_t>(std::max(1, options_.candidates)));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, operation_, first_.get(), second_.get(), result_.get(), result_.get(),
        preference.get(), static_cast<int>(found.size()), found.data(), &count);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
      throw RuntimeFault("cuBLASLt has no algorithm for " + describe(shape_));
    }
    found.resize(static_cast<std::size_t>(count));
    std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
    if (found.empty()) throw RuntimeFault("cuBLASLt has no algorithm for " + describe(shape_));
    candidates_ = std::move(found);
  }

  cublasStatus_t launch(const cublasLtMatmulHeuristicResult_t& candidate,
                        const GemmOperands& operands, void* target, cudaStream_t stream) const {
    const float alpha = 1.0F;
    const float beta = shape_.is_accumulating ? 1.0F : 0.0F;
    return cublasLtMatmul(handle_, operation_, &alpha, operands.b, first_.get(), operands.a,
                          second_.get(), &beta, operands.c, result_.get(), target, result_.get(),
                          &candidate.algo, options_.workspace, options_.workspace_bytes, stream);
  }

  const cublasLtMatmulHeuristicResult_t& chosen() const {
    return candidates_[static_cast<std::size_t>(choice_.candidate)];
  }

  // The minimum of several runs of each, in rounds, so that a drift of the clock hits all alike.
  void time_candidates(const GemmOperands& operands, cudaStream_t stream) {
    const Scratch target(static_cast<std::size_t>(shape_.m * shape_.n) * bytes_of(shape_.output));
    const Event begin;
    const Event end;
    constexpr int kRounds = 6;  // the first warms up
    std::vector<float> best(candidates_.size(), 0.0F);
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if (best[i] < 0.0F) continue;
        check(cudaEventRecord(begin.get(), stream), "an event's record");
        const cublasStatus_t status = launch(candidates_[i], operands, target.data(), stream);
        check(cudaEventRecord(end.get(), stream), "an event's record");
        check(cudaEventSynchronize(end.get()), "a wait for a timing");
        float ms = 0.0F;
        check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "a timing");
        if (status != CUBLAS_STATUS_SUCCESS) {
          best[i] = -1.0F;  // does not run here after all
        } else if (round > 0) {
          best[i] = round == 1 ? ms : std::min(best[i], ms);
        }
      }
    }
    take_best(best);
  }

  void take_best(const std::vector<float>& best) {
    int winner = -1;
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (best[i] <= 0.0F) continue;
      if (winner < 0 || best[i] < best[static_cast<std::size_t>(winner)]) {
        winner = static_cast<int>(i);
      }
    }
    if (winner < 0) throw RuntimeFault("no algorithm of cuBLASLt runs for " + describe(shape_));
    choice_.candidate = winner;
    choice_.best_ms = best[static_cast<std::size_t>(winner)];
    choice_.first_ms = best[0];
  }

  cublasLtHandle_t handle_;
  GemmShape shape_;
  GemmOptions options_;
  Layout first_;
  Layout second_;
  Layout result_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> candidates_;
  Choice choice_;
};

class GemmPlans::Cache {
 public:
  explicit Cache(const GemmOptions& given) : options(given) {
    check(cublasLtCreate(&handle), "a handle");
  }
  ~Cache() {
    plans.clear();
    cublasLtDestroy(handle);
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  GemmOptions options;
  cublasLtHandle_t handle = nullptr;
  std::map<std::pair<GemmShape, std::uint32_t>, std::unique_ptr<Plan>> plans;
};

GemmPlans::GemmPlans(const GemmOptions& options) : cache_(std::make_unique<Cache>(options)) {}

GemmPlans::~GemmPlans() = default;

void GemmPlans::run(const GemmShape& shape, const GemmOperands& operands, cudaStream_t stream) {
  const auto key = std::pair(shape, alignment_of(operands));
  auto found = cache_->plans.find(key);
  if (found == cache_->plans.end()) {
    auto plan = std::make_unique<Plan>(cache_->handle, shape, cache_->options);
    plan->choose(operands, stream);
    found = cache_->plans.emplace(key, std::move(plan)).first;
  }
  found->second->run(operands, stream);
}

GemmPlans::Choice GemmPlans::choice(const GemmShape& shape) const {
  const auto found = cache_->plans.lower_bound({shape, 0});
  if (found == cache_->plans.end() || found->first.first != shape) return {};
  return found->second->choice();
}

}  // namespace zeroproof::cuda
