#include "engine/runtime/cuda/cuda_fused_ops.h"

#include <utility>

#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/cuda_products.h"
#include "engine/runtime/cuda/device_buffer.h"
#include "engine/runtime/cuda/fused/cross_entropy.h"
#include "engine/runtime/cuda/fused/cudnn_attention.h"
#include "engine/runtime/cuda/fused/embedding.h"
#include "engine/runtime/cuda/fused/gelu.h"
#include "engine/runtime/cuda/fused/rms_norm.h"
#include "engine/runtime/cuda/fused/rotary.h"
#include "engine/runtime/cuda/kernels/launches.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

constexpr std::int64_t kVector = 8;  // elements of one access of 16 bytes
constexpr std::int64_t kWidthMax = 8192;

bool is_on_gpu(const Tensor& x) {
  return !x.is_defined() || (x.dtype() == DType::bfloat16 && buffer_of(x.impl()) != nullptr);
}

template <class T>
T* data(const Tensor& x) {
  return x.is_defined() && x.numel() > 0 ? static_cast<T*>(strided(Span::of(x)).data) : nullptr;
}
Bf16* bf16(const Tensor& x) {
  return data<Bf16>(x);
}

std::int64_t width_of(const Tensor& x) {
  return x.sizes().back();
}
int rows_of(const Tensor& x) {
  return static_cast<int>(x.numel() / width_of(x));
}
bool has_vector_rows(const Tensor& x) {
  return x.numel() > 0 && width_of(x) % kVector == 0;
}

AttentionShape shape_of(const Tensor& qkv, std::int64_t heads) {
  const std::int64_t width = heads * kHeadWidth;
  return {.batch = static_cast<int>(qkv.sizes()[0]),
          .heads = static_cast<int>(heads),
          .seq = static_cast<int>(qkv.sizes()[1]),
          .q_stride = 3 * width,
          .v_stride = 3 * width,
          .out_stride = width};
}

}  // namespace

CudaFusedOps::CudaFusedOps(std::shared_ptr<Gpu> gpu, CudaArithmetic arithmetic,
                           CudaProducts& products)
    : gpu_(std::move(gpu)), arithmetic_(arithmetic), products_(products) {}
CudaFusedOps::~CudaFusedOps() = default;

Tensor CudaFusedOps::make(const Tensor& like, Shape sizes, DType dtype) const {
  Tensor out = make_tensor(gpu_, std::move(sizes), dtype);
  out.impl().device = like.device();
  return out;
}

Tensor CudaFusedOps::numbers(const Tensor& ids) const {
  const Tensor given = uploaded(gpu_, ids);
  Tensor out = make_tensor(gpu_, ids.sizes(), DType::float32);
  ZP_CUDA(launch_whole_numbers(gpu_->compute(), data<std::int32_t>(out), strided(given.impl())));
  return out;
}

RmsNormOutputs CudaFusedOps::add_rms_norm(const Tensor& x, const Tensor& residual,
                                          const Tensor& weight, double eps) const {
  const bool fits = has_vector_rows(x) && width_of(x) <= kWidthMax;
  if (!fits || !is_on_gpu(x) || !is_on_gpu(residual) || !is_on_gpu(weight))
    return cpu_.add_rms_norm(x, residual, weight, eps);
  Shape rows = x.sizes();
  rows.pop_back();
  RmsNormOutputs out{.sum = residual.is_defined() ? make(x, x.sizes(), x.dtype()) : x,
                     .y = make(x, x.sizes(), x.dtype()),
                     .inverse_rms = make(x, rows, DType::float32)};
  ZP_CUDA(rms_norm_forward({.x = bf16(x),
                            .residual = bf16(residual),
                            .weight = bf16(weight),
                            .sum = residual.is_defined() ? bf16(out.sum) : nullptr,
                            .y = bf16(out.y),
                            .inv_rms = data<float>(out.inverse_rms),
                            .rows = rows_of(x),
                            .width = static_cast<int>(width_of(x)),
                            .eps = static_cast<float>(eps)},
                           gpu_->compute()));
  return out;
}

RmsNormGrads CudaFusedOps::add_rms_norm_backward(const Tensor& grad_y, const Tensor& grad_sum,
                                                 const RmsNormSaved& saved) const {
  const bool fits = has_vector_rows(grad_y) && width_of(grad_y) <= kWidthMax;
  if (!fits || !is_on_gpu(grad_y) || !is_on_gpu(grad_sum) || !is_on_gpu(saved.sum))
    return cpu_.add_rms_norm_backward(grad_y, grad_sum, saved);
  RmsNormGrads out{.x = make(grad_y, grad_y.sizes(), grad_y.dtype()),
                   .weight = make(grad_y, saved.weight.sizes(), grad_y.dtype())};
  const int rows = rows_of(grad_y);
  const auto width = static_cast<int>(width_of(grad_y));
  const Tensor partials = make_tensor(gpu_, {rms_norm_partial_floats(rows, width)}, DType::float32);
  ZP_CUDA(rms_norm_backward({.dy = bf16(grad_y),
                             .sum = bf16(saved.sum),
                             .weight = bf16(saved.weight),
                             .inv_rms = data<float>(saved.inverse_rms),
                             .dresidual = bf16(grad_sum),
                             .dx = bf16(out.x),
                             .dweight = bf16(out.weight),
                             .partials = data<float>(partials),
                             .rows = rows,
                             .width = width,
                             .is_accumulating = false},
                            gpu_->compute()));
  return out;
}

Tensor CudaFusedOps::gelu(const Tensor& x) const {
  if (!is_on_gpu(x)) return cpu_.gelu(x);
  Tensor out = make(x, x.sizes(), x.dtype());
  if (products_.finish_with_gelu(x, out)) return out;
  ZP_CUDA(gelu_tanh_forward(bf16(x), bf16(out), x.numel(), gpu_->compute()));
  return out;
}

Tensor CudaFusedOps::gelu_backward(const Tensor& grad, const Tensor& x) const {
  if (!is_on_gpu(grad) || !is_on_gpu(x)) return cpu_.gelu_backward(grad, x);
  Tensor out = make(x, x.sizes(), x.dtype());
  ZP_CUDA(gelu_tanh_backward(
      {.dy = bf16(grad), .x = bf16(x), .dx = bf16(out), .elements = x.numel()}, gpu_->compute()));
  return out;
}

const float* CudaFusedOps::rotary_angles(std::int64_t positions) const {
  const std::int64_t needed = positions * kHeadWidth;  // a cosine and a sine for each pair
  if (!angles_.is_defined() || angles_.numel() < needed) {
    angles_ = make_tensor(gpu_, {needed}, DType::float32);
    ZP_CUDA(rotary_table(data<float>(angles_), static_cast<int>(positions), kRotaryTheta,
                         gpu_->compute()));
  }
  return data<float>(angles_);
}

// The heads of q and k, where they lie.
void CudaFusedOps::rotate(std::uint16_t* qkv, const AttentionShape& shape, bool is_inverse) const {
  ZP_CUDA(rotary({.from = qkv,
                  .to = qkv,
                  .table = rotary_angles(shape.seq),
                  .batch = shape.batch,
                  .seq = shape.seq,
                  .heads = shape.heads,
                  .from_stride = shape.q_stride,
                  .to_stride = shape.q_stride,
                  .is_inverse = is_inverse},
                 gpu_->compute()));
}

// cuDNN's kernels, or ours for a shape that it has none for.
void CudaFusedOps::attend(const AttentionShape& shape,
                          const std::function<void(CudnnAttention&, void*)>& library,
                          const std::function<void()>& own) const {
  if (!arithmetic_.uses_cudnn) return own();
  if (!cudnn_) cudnn_ = std::make_unique<CudnnAttention>(arithmetic_.is_deterministic);
  std::size_t bytes = 0;
  try {
    bytes = cudnn_->workspace_bytes(shape);
  } catch (const RuntimeFault&) {
    own();
    return;
  }
  const Tensor workspace =
      make_tensor(gpu_, {static_cast<std::int64_t>(bytes / sizeof(float)) + 1}, DType::float32);
  library(*cudnn_, data<void>(workspace));
}

AttentionOutputs CudaFusedOps::causal_attention(const Tensor& qkv, std::int64_t heads) const {
  if (!is_on_gpu(qkv) || qkv.numel() == 0) return cpu_.causal_attention(qkv, heads);
  const AttentionShape shape = shape_of(qkv, heads);
  AttentionOutputs out{.out = make(qkv, {shape.batch, shape.seq, heads * kHeadWidth}, qkv.dtype()),
                       .rotated = qkv,
                       .log_sum_exp = make(qkv, {shape.batch, heads, shape.seq}, DType::float32)};
  Bf16* const q = bf16(qkv);
  ++qkv.impl().storage->version;
  rotate(q, shape, false);
  const std::int64_t width = heads * kHeadWidth;
  const AttentionForward args{.q = q,
                              .k = q + width,
                              .v = q + 2 * width,
                              .out = bf16(out.out),
                              .log_sums = data<float>(out.log_sum_exp)};
  attend(
      shape,
      [&](CudnnAttention& cudnn, void* workspace) {
        cudnn.forward(shape, args, workspace, gpu_->compute());
      },
      [&] { ZP_CUDA(attention_forward(shape, args, gpu_->compute())); });
  return out;
}

Tensor CudaFusedOps::causal_attention_backward(const Tensor& grad_out,
                                               const AttentionOutputs& saved,
                                               std::int64_t heads) const {
  if (!is_on_gpu(grad_out) || !is_on_gpu(saved.rotated) || grad_out.numel() == 0)
    return cpu_.causal_attention_backward(grad_out, saved, heads);
  const AttentionShape shape = shape_of(saved.rotated, heads);
  const std::int64_t width = heads * kHeadWidth;
  Tensor out = make(grad_out, saved.rotated.sizes(), grad_out.dtype());
  const Bf16* const q = bf16(saved.rotated);
  Bf16* const dq = bf16(out);
  const AttentionBackward args{.q = q,
                               .k = q + width,
                               .v = q + 2 * width,
                               .out = bf16(saved.out),
                               .dout = bf16(grad_out),
                               .log_sums = data<float>(saved.log_sum_exp),
                               .dq = dq,
                               .dk = dq + width,
                               .dv = dq + 2 * width};
  attend(
      shape,
      [&](CudnnAttention& cudnn, void* workspace) {
        cudnn.backward(shape, args, workspace, gpu_->compute());
      },
      [&] {
        const Tensor deltas = make_tensor(gpu_, {attention_delta_floats(shape)}, DType::float32);
        ZP_CUDA(attention_backward(shape, args, data<float>(deltas), gpu_->compute()));
      });
  rotate(dq, shape, true);
  return out;
}

CrossEntropyOutputs CudaFusedOps::cross_entropy(const Tensor& logits, const Tensor& targets) const {
  const bool fits = has_vector_rows(logits) && width_of(logits) <= kCrossEntropyVocabMax;
  if (!fits || !is_on_gpu(logits)) return cpu_.cross_entropy(logits, targets);
  const int rows = rows_of(logits);
  const Tensor classes = numbers(targets);
  const Tensor losses = make_tensor(gpu_, {rows}, DType::float32);
  CrossEntropyOutputs out{.loss = make(logits, {}, DType::float32), .grad_logits = logits};
  ++logits.impl().storage->version;
  ZP_CUDA(cuda::cross_entropy({.logits = bf16(logits),
                               .targets = data<std::int32_t>(classes),
                               .losses = data<float>(losses),
                               .rows = rows,
                               .vocab = static_cast<int>(width_of(logits)),
                               .grad_scale = 1.0F / static_cast<float>(rows),
                               .is_loss_only = false},
                              gpu_->compute()));
  ZP_CUDA(mean_loss(
      {.values = data<float>(losses), .mean = data<float>(out.loss), .count = rows, .factor = 1.0F},
      gpu_->compute()));
  return out;
}

// A factor that is a number of the host's is known without asking the device.
Tensor CudaFusedOps::cross_entropy_backward(const Tensor& grad_loss,
                                            const Tensor& grad_logits) const {
  if (!is_on_gpu(grad_logits)) return cpu_.cross_entropy_backward(grad_loss, grad_logits);
  const Strided factor = strided(grad_loss.impl());
  if (factor.data == nullptr && factor.constant == 1.0) return grad_logits;
  Tensor out = make(grad_logits, grad_logits.sizes(), grad_logits.dtype());
  const Tensor repeated = broadcast_to(grad_loss, grad_logits.sizes());
  ZP_CUDA(launch_binary(gpu_->compute(), BinaryOp::mul, strided(out.impl()),
                        strided(grad_logits.impl()), strided(repeated.impl())));
  return out;
}

Tensor CudaFusedOps::embedding(const Tensor& table, const Tensor& ids) const {
  if (!is_on_gpu(table) || !has_vector_rows(table)) return cpu_.embedding(table, ids);
  Shape sizes = ids.sizes();
  sizes.push_back(width_of(table));
  Tensor out = make(table, sizes, table.dtype());
  const Tensor rows = numbers(ids);
  ZP_CUDA(embedding_forward({.table = bf16(table),
                             .ids = data<std::int32_t>(rows),
                             .out = bf16(out),
                             .tokens = static_cast<int>(ids.numel()),
                             .vocab = rows_of(table),
                             .width = static_cast<int>(width_of(table))},
                            gpu_->compute()));
  return out;
}

Tensor CudaFusedOps::embedding_backward(const Tensor& grad, const Tensor& ids,
                                        std::int64_t rows) const {
  if (!is_on_gpu(grad) || !has_vector_rows(grad)) return cpu_.embedding_backward(grad, ids, rows);
  const auto tokens = static_cast<int>(ids.numel());
  const auto vocabulary = static_cast<int>(rows);
  Tensor out = make(grad, {rows, width_of(grad)}, grad.dtype());
  const Tensor numbered = numbers(ids);
  const Tensor workspace =
      make_tensor(gpu_, {embedding_workspace_ints(tokens, vocabulary)}, DType::float32);
  ZP_CUDA(cuda::embedding_backward({.dout = bf16(grad),
                                    .ids = data<std::int32_t>(numbered),
                                    .dtable = bf16(out),
                                    .workspace = data<std::int32_t>(workspace),
                                    .tokens = tokens,
                                    .vocab = vocabulary,
                                    .width = static_cast<int>(width_of(grad)),
                                    .is_accumulating = false},
                                   gpu_->compute()));
  return out;
}

}  // namespace zeroproof::cuda
