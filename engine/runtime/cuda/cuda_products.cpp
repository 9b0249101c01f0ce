#include "engine/runtime/cuda/cuda_products.h"

#include <utility>

#include "engine/runtime/cuda/kernels/strided.h"

namespace zeroproof::cuda {
namespace {

Tensor transposed(const Tensor& x) {
  return x.as_strided({x.sizes()[1], x.sizes()[0]}, {x.strides()[1], x.strides()[0]},
                      x.impl().offset_elements);
}

bool is_dense(const Tensor& x) {
  return x.is_contiguous() || transposed(x).is_contiguous();
}

GemmType gemm_type(DType dtype) {
  if (dtype == DType::float32) return GemmType::fp32;
  return dtype == DType::bfloat16 ? GemmType::bf16 : GemmType::fp16;
}

void* data_of(const Tensor& x) {
  return strided(x.impl()).data;
}

}  // namespace

CudaProducts::CudaProducts(std::shared_ptr<Gpu> gpu, CudaArithmetic arithmetic)
    : gpu_(std::move(gpu)), arithmetic_(arithmetic) {}
CudaProducts::~CudaProducts() = default;

GemmPlans& CudaProducts::plans() {
  if (plans_) return *plans_;
  constexpr std::int64_t kWorkspaceBytes = 64LL << 20;
  workspace_ = std::make_unique<DeviceBuffer>(gpu_, kWorkspaceBytes, Placement::device);
  plans_ = std::make_unique<GemmPlans>(
      GemmOptions{.workspace = workspace_->data(),
                  .workspace_bytes = static_cast<std::size_t>(kWorkspaceBytes),
                  .is_first_taken = arithmetic_.is_deterministic});
  return *plans_;
}

bool CudaProducts::multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  if (a.sizes().size() != 2 || a.dtype() != b.dtype() || a.dtype() == DType::float64) return false;
  GemmShape shape{.m = a.sizes()[0], .n = b.sizes()[1], .k = a.sizes()[1]};
  if (shape.m * shape.n * shape.k <= kReferenceProducts || !is_dense(a) || !is_dense(b))
    return false;
  shape.is_a_transposed = !a.is_contiguous();
  shape.is_b_transposed = !b.is_contiguous();
  shape.inputs = shape.output = gemm_type(a.dtype());
  const Product product{shape, a, b, out};
  if (arithmetic_.is_deterministic || shape.inputs != GemmType::bf16) {
    run(product, data_of(out), nullptr);
    return true;
  }
  gpu_->defer(
      [this] {
        const Product last = *std::exchange(put_off_, std::nullopt);
        run(last, data_of(last.out), nullptr);
      },
      {a.impl().storage.get(), b.impl().storage.get(), out.impl().storage.get()});
  put_off_ = product;
  return true;
}

void CudaProducts::run(const Product& product, void* c, void* aux) {
  plans().run(product.shape, {.a = data_of(product.a), .b = data_of(product.b), .c = c, .aux = aux},
              gpu_->compute());
}

bool CudaProducts::is_put_off(const Tensor& x) const {
  return put_off_ && x.impl().storage == put_off_->out.impl().storage && x.is_contiguous() &&
         x.numel() == put_off_->out.numel();
}

bool CudaProducts::finish_with_gelu(const Tensor& x, const Tensor& y) {
  if (!is_put_off(x)) return false;
  gpu_->forget_put_off();
  Product product = *std::exchange(put_off_, std::nullopt);
  product.shape.epilogue = GemmEpilogue::gelu_aux;
  run(product, data_of(y), data_of(x));
  return true;
}

}  // namespace zeroproof::cuda
