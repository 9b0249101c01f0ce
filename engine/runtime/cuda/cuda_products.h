#pragma once

#include <memory>
#include <optional>

#include "engine/runtime/cuda/device_buffer.h"
#include "engine/runtime/cuda/fused/gemm.h"
#include "engine/runtime/cuda/gpu.h"
#include "zeroproof/engine/runtime/cuda/cuda_world.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::cuda {

// Products of large dense matrices by cuBLASLt, on the compute stream. Where two runs need not
// have the same bits a product is put off, so that the GELU after it becomes its epilogue.
class CudaProducts {
 public:
  // More terms than this go to cuBLASLt, which sums them in float32.
  static constexpr std::int64_t kReferenceProducts = 1 << 22;

  CudaProducts(std::shared_ptr<Gpu> gpu, CudaArithmetic arithmetic);
  ~CudaProducts();
  CudaProducts(const CudaProducts&) = delete;
  CudaProducts& operator=(const CudaProducts&) = delete;

  // out = a b, each as it lies or transposed. False: not for the library.
  bool multiply(const Tensor& a, const Tensor& b, const Tensor& out);
  // y = gelu(x), if x is the product that was put off; x is written too.
  bool finish_with_gelu(const Tensor& x, const Tensor& y);

 private:
  struct Product {
    GemmShape shape;
    Tensor a, b, out;
  };

  void run(const Product& product, void* c, void* aux);
  GemmPlans& plans();
  bool is_put_off(const Tensor& x) const;

  std::shared_ptr<Gpu> gpu_;
  CudaArithmetic arithmetic_;
  std::unique_ptr<DeviceBuffer> workspace_;  // of the plans
  std::unique_ptr<GemmPlans> plans_;
  std::optional<Product> put_off_;
};

}  // namespace zeroproof::cuda
