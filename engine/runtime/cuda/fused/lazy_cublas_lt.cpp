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

// The function of the same name in the library, with its own type; parameters have its names, cut.
#define ZP_FOUND(function)                                 \
  static const auto kFound = find(&(function), #function); \
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

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t adesc, const void* b,
                              cublasLtMatrixLayout_t bdesc, const void* beta, const void* c,
                              cublasLtMatrixLayout_t cdesc, void* d, cublasLtMatrixLayout_t ddesc,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t bytes, cudaStream_t stream) {
  ZP_FOUND(cublasLtMatmul)
  (handle, desc, alpha, a, adesc, b, bdesc, beta, c, cdesc, d, ddesc, algorithm, workspace, bytes,
   stream);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t adesc,
                                              cublasLtMatrixLayout_t bdesc,
                                              cublasLtMatrixLayout_t cdesc,
                                              cublasLtMatrixLayout_t ddesc,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t array[], int* count) {
  ZP_FOUND(cublasLtMatmulAlgoGetHeuristic)
  (handle, desc, adesc, bdesc, cdesc, ddesc, preference, requested, array, count);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  ZP_FOUND(cublasLtMatmulDescCreate)(desc, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  ZP_FOUND(cublasLtMatmulDescDestroy)(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* buf, std::size_t bytes) {
  ZP_FOUND(cublasLtMatmulDescSetAttribute)(desc, attribute, buf, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  ZP_FOUND(cublasLtMatmulPreferenceCreate)(preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  ZP_FOUND(cublasLtMatmulPreferenceDestroy)(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* buf, std::size_t bytes) {
  ZP_FOUND(cublasLtMatmulPreferenceSetAttribute)(preference, attribute, buf, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  ZP_FOUND(cublasLtMatrixLayoutCreate)(layout, type, rows, cols, ld);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  ZP_FOUND(cublasLtMatrixLayoutDestroy)(layout);
}
