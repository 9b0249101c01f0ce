#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {
namespace {

// target[i] = value(target[i], source[i])
template <class Value>
__global__ void map_kernel(Strided target, Strided source, Value value) {
  for (std::int64_t i = first_element(); i < target.elements; i += grid_stride()) {
    const std::int64_t at = offset_of(target, i);
    store_at(target, at, value(target, at, source, i));
  }
}

struct Fill {
  double number;
  __device__ double operator()(const Strided&, std::int64_t, const Strided&, std::int64_t) const {
    return number;
  }
};
struct Copy {
  double factor;
  __device__ double operator()(const Strided&, std::int64_t, const Strided& source,
                               std::int64_t i) const {
    return load(source, i) * factor;
  }
};
struct Add {
  double factor;
  __device__ double operator()(const Strided& target, std::int64_t at, const Strided& source,
                               std::int64_t i) const {
    return load_at(target, at) + load(source, i) * factor;
  }
};
struct Scale {
  double factor;
  __device__ double operator()(const Strided& target, std::int64_t at, const Strided&,
                               std::int64_t) const {
    return load_at(target, at) * factor;
  }
};
struct Divide {
  double divisor;
  __device__ double operator()(const Strided& target, std::int64_t at, const Strided&,
                               std::int64_t) const {
    return load_at(target, at) / divisor;
  }
};

template <class Value>
void launch_map(cudaStream_t stream, const Strided& target, const Strided& source, Value value) {
  if (target.elements == 0) return;
  map_kernel<<<blocks_for(target.elements), kThreads, 0, stream>>>(target, source, value);
}

struct Square {
  __device__ double operator()(double x) const { return x * x; }
};
struct IsNotFinite {
  __device__ double operator()(double x) const { return isfinite(x) ? 0.0 : 1.0; }
};

template <class Term>
__global__ void ordered_sum_kernel(Strided target, Strided source, Term term) {
  double total = load(target, 0);
  for (std::int64_t i = 0; i < source.elements; ++i) total += term(load(source, i));
  store(target, 0, total);
}

__device__ double block_sum(double mine) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

template <class Term>
__global__ void partial_sum_kernel(double* partials, Strided source, Term term) {
  double mine = 0.0;
  for (std::int64_t i = first_element(); i < source.elements; i += grid_stride())
    mine += term(load(source, i));
  const double sum = block_sum(mine);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void add_partials_kernel(Strided target, const double* partials) {
  double mine = 0.0;
  for (int i = threadIdx.x; i < kPartials; i += kThreads) mine += partials[i];
  const double sum = block_sum(mine);
  if (threadIdx.x == 0) store(target, 0, load(target, 0) + sum);
}

template <class Term>
void launch_sum(cudaStream_t stream, const Strided& target, const Strided& source,
                double* partials, Term term) {
  if (source.elements == 0) return;
  if (source.elements <= kOrderedSumMax) {
    ordered_sum_kernel<<<1, 1, 0, stream>>>(target, source, term);
    return;
  }
  partial_sum_kernel<<<kPartials, kThreads, 0, stream>>>(partials, source, term);
  add_partials_kernel<<<1, kThreads, 0, stream>>>(target, partials);
}

}  // namespace

void launch_fill(cudaStream_t stream, const Strided& target, double value) {
  launch_map(stream, target, target, Fill{value});
}
void launch_copy(cudaStream_t stream, const Strided& target, const Strided& source,
                 double factor) {
  launch_map(stream, target, source, Copy{factor});
}
void launch_add(cudaStream_t stream, const Strided& target, const Strided& source, double factor) {
  launch_map(stream, target, source, Add{factor});
}
void launch_scale(cudaStream_t stream, const Strided& target, double factor) {
  launch_map(stream, target, target, Scale{factor});
}
void launch_divide(cudaStream_t stream, const Strided& target, double divisor) {
  launch_map(stream, target, target, Divide{divisor});
}

void launch_add_squares(cudaStream_t stream, const Strided& target, const Strided& source,
                        double* partials) {
  launch_sum(stream, target, source, partials, Square{});
}
void launch_count_non_finite(cudaStream_t stream, const Strided& target, const Strided& source,
                             double* partials) {
  launch_sum(stream, target, source, partials, IsNotFinite{});
}

}  // namespace zeroproof::cuda
