#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"
#include "model/element_ops.h"

namespace zeroproof::cuda {
namespace {

__global__ void unary_kernel(UnaryOp op, Strided out, Strided x) {
  for (std::int64_t i = first_element(); i < out.elements; i += grid_stride())
    store(out, i, evaluate(op, load(x, i)));
}

__global__ void binary_kernel(BinaryOp op, Strided out, Strided a, Strided b) {
  for (std::int64_t i = first_element(); i < out.elements; i += grid_stride())
    store(out, i, evaluate(op, load(a, i), load(b, i)));
}

__global__ void whole_numbers_kernel(std::int32_t* out, Strided x) {
  for (std::int64_t i = first_element(); i < x.elements; i += grid_stride())
    out[i] = static_cast<std::int32_t>(load(x, i));
}

}  // namespace

cudaError_t launch_whole_numbers(cudaStream_t stream, std::int32_t* out, const Strided& x) {
  if (x.elements == 0) return cudaSuccess;
  whole_numbers_kernel<<<blocks_for(x.elements), kThreads, 0, stream>>>(out, x);
  return cudaGetLastError();
}

cudaError_t launch_unary(cudaStream_t stream, UnaryOp op, const Strided& out, const Strided& x) {
  if (out.elements == 0) return cudaSuccess;
  unary_kernel<<<blocks_for(out.elements), kThreads, 0, stream>>>(op, out, x);
  return cudaGetLastError();
}

cudaError_t launch_binary(cudaStream_t stream, BinaryOp op, const Strided& out, const Strided& a,
                          const Strided& b) {
  if (out.elements == 0) return cudaSuccess;
  binary_kernel<<<blocks_for(out.elements), kThreads, 0, stream>>>(op, out, a, b);
  return cudaGetLastError();
}

}  // namespace zeroproof::cuda
