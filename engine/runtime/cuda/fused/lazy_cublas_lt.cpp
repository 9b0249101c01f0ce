// cuBLASLt's functions, found when one is first called: the library takes a tenth of a second to
// load, which every command without a GPU would pay if it were linked.
#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "zeroproof/engine/runtime/fault.h"

namespace {

void* library() {
  static void* const kLibrary = [] {
    const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
    void* loaded = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr)
      loaded = dlopen(fmt::format("{}/{}", ZP_CUDA_LIBRARIES, name).c_str(), RTLD_NOW);
    if (loaded == nullptr)
      throw zeroproof::RuntimeFault(fmt::format("cannot load {}: {}", name, dlerror()));
    return loaded;
  }();
  return kLibrary;
}

template <class Function>
Function* find(Function*, const char* name) {
  void* const found = dlsym(library(), name);
  if (found == nullptr) throw zeroproof::RuntimeFault(fmt::format("cuBLASLt has no {}", name));
  return reinterpret_cast<Function*>(found);
}

}  // namespace

// The function of the same name in the library, with its own type.
#define ZP_FOUND(function)                               \
  static const auto kFound = find(&function, #function); \
  return kFound

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  ZP_FOUND(cublasLtCreate)(handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  ZP_FOUND(cublasLtDestroy)(handle);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  ZP_FOUND(cublasLtGetStatusString)(status);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t of_a, const void* b,
                              cublasLtMatrixLayout_t of_b, const void* beta, const void* c,
                              cublasLtMatrixLayout_t of_c, void* d, cublasLtMatrixLayout_t of_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  ZP_FOUND(cublasLtMatmul)
  (handle, what, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, algorithm, workspace,
   workspace_bytes, stream);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t what, cublasLtMatrixLayout_t of_a,
    cublasLtMatrixLayout_t of_b, cublasLtMatrixLayout_t of_c, cublasLtMatrixLayout_t of_d,
    cublasLtMatmulPreference_t preference, int asked, cublasLtMatmulHeuristicResult_t results[],
    int* found) {
  ZP_FOUND(cublasLtMatmulAlgoGetHeuristic)
  (handle, what, of_a, of_b, of_c, of_d, preference, asked, results, found);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* what, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  ZP_FOUND(cublasLtMatmulDescCreate)(what, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t what) {
  ZP_FOUND(cublasLtMatmulDescDestroy)(what);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t what,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  ZP_FOUND(cublasLtMatmulDescSetAttribute)(what, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  ZP_FOUND(cublasLtMatmulPreferenceCreate)(preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  ZP_FOUND(cublasLtMatmulPreferenceDestroy)(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  ZP_FOUND(cublasLtMatmulPreferenceSetAttribute)(preference, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  ZP_FOUND(cublasLtMatrixLayoutCreate)(layout, type, rows, columns, leading);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  ZP_FOUND(cublasLtMatrixLayoutDestroy)(layout);
}
