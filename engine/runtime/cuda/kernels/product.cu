#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {
namespace {

__global__ void product_kernel(Product of) {
  const std::int64_t columns = of.out.sizes[2];
  const std::int64_t rows = of.out.sizes[1];
  const std::int64_t inner = of.a.sizes[2];
  for (std::int64_t o = first_element(); o < of.out.elements; o += grid_stride()) {
    const std::int64_t j = o % columns;
    const std::int64_t i = o / columns % rows;
    const std::int64_t batch = o / columns / rows;
    const std::int64_t row = batch * of.a.strides[0] + i * of.a.strides[1];
    const std::int64_t column = batch * of.b.strides[0] + j * of.b.strides[2];
    double sum = 0.0;
    for (std::int64_t k = 0; k < inner; ++k)
      sum += load_at(of.a, row + k * of.a.strides[2]) * load_at(of.b, column + k * of.b.strides[1]);
    if (of.has_bias) sum += load(of.bias, o);
    store(of.out, o, sum);
  }
}

}  // namespace

cudaError_t launch_product(cudaStream_t stream, const Product& product) {
  if (product.out.elements == 0) return cudaSuccess;
  product_kernel<<<blocks_for(product.out.elements), kThreads, 0, stream>>>(product);
  return cudaGetLastError();
}

}  // namespace zeroproof::cuda
