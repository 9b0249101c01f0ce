#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {
namespace {

__device__ double apply(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::neg:
      return -x;
    case UnaryOp::abs:
      return fabs(x);
    case UnaryOp::sign:
      return x > 0 ? 1.0 : (x < 0 ? -1.0 : x);
    case UnaryOp::relu:
      return x > 0 || isnan(x) ? x : 0.0;
    case UnaryOp::step:
      return x > 0 ? 1.0 : 0.0;
    case UnaryOp::tanh:
      return tanh(x);
    case UnaryOp::sin:
      return sin(x);
    case UnaryOp::cos:
      return cos(x);
    case UnaryOp::sqrt:
      return sqrt(x);
    case UnaryOp::exp:
      return exp(x);
    case UnaryOp::log:
      return log(x);
    case UnaryOp::erf:
      return erf(x);
  }
  return x;
}

__device__ double apply(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::pow:
      return pow(a, b);
  }
  return a;
}

__global__ void unary_kernel(UnaryOp op, Strided out, Strided x) {
  for (std::int64_t i = first_element(); i < out.elements; i += grid_stride())
    store(out, i, apply(op, load(x, i)));
}

__global__ void binary_kernel(BinaryOp op, Strided out, Strided a, Strided b) {
  for (std::int64_t i = first_element(); i < out.elements; i += grid_stride())
    store(out, i, apply(op, load(a, i), load(b, i)));
}

__global__ void whole_numbers_kernel(std::int32_t* out, Strided x) {
  for (std::int64_t i = first_element(); i < x.elements; i += grid_stride())
    out[i] = static_cast<std::int32_t>(load(x, i));
}

}  // namespace

void launch_whole_numbers(cudaStream_t stream, std::int32_t* out, const Strided& x) {
  if (x.elements == 0) return;
  whole_numbers_kernel<<<blocks_for(x.elements), kThreads, 0, stream>>>(out, x);
}

void launch_unary(cudaStream_t stream, UnaryOp op, const Strided& out, const Strided& x) {
  if (out.elements == 0) return;
  unary_kernel<<<blocks_for(out.elements), kThreads, 0, stream>>>(op, out, x);
}

void launch_binary(cudaStream_t stream, BinaryOp op, const Strided& out, const Strided& a,
                   const Strided& b) {
  if (out.elements == 0) return;
  binary_kernel<<<blocks_for(out.elements), kThreads, 0, stream>>>(op, out, a, b);
}

}  // namespace zeroproof::cuda
