#include "engine/runtime/cuda/cuda_kernels.h"

#include <utility>

#include "engine/runtime/cuda/captured_updates.h"
#include "engine/runtime/cuda/check.h"
#include "engine/runtime/cuda/cuda_stream.h"
#include "engine/runtime/cuda/fused/adam.h"
#include "engine/runtime/cuda/kernels/launches.h"
#include "engine/runtime/host/elements.h"
#include "model/check.h"

namespace zeroproof::cuda {
namespace {

void check_equal_length(const Span& target, const Span& source) {
  ZP_CHECK(target.elements == source.elements, "a kernel on spans of different lengths");
}

// A copy that moves bytes from one buffer of the GPU to another.
bool are_bytes(const Span& to, const Span& from) {
  return !to.is_empty() && to.dtype() == from.dtype() && buffer_of(*from.tensor) != nullptr &&
         to.tensor->storage != from.tensor->storage && host::is_dense(to) && host::is_dense(from);
}

// One float64 of the GPU.
double* number(const Strided& of) {
  ZP_CHECK(of.elements == 1 && of.dtype == DType::float64 && of.data != nullptr,
           "a number of the device is one float64 on it");
  return static_cast<double*>(of.data);
}

}  // namespace

// What a kernel reads, and the copy on the GPU where there was none.
class CudaKernels::Source {
 public:
  Source(const CudaKernels& kernels, Stream& stream, const Span& span) {
    kernels.log_.read(stream, span);
    if (span.is_empty() || is_strided(*span.tensor)) {
      if (DeviceBuffer* buffer = buffer_of(*span.tensor)) buffer->use_on(handle(stream));
      view_ = strided(span);
      return;
    }
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(span.elements));
    host::for_each_element(span, [&](double element) { values.push_back(element); });
    uploaded_ = upload(kernels.gpu_, values, {span.elements}, span.dtype(), native(stream));
    view_ = strided(Span::of(uploaded_));
  }
  const Strided& view() const { return view_; }

 private:
  Tensor uploaded_;
  Strided view_;
};

CudaKernels::CudaKernels(std::shared_ptr<Gpu> gpu, CudaArithmetic arithmetic,
                         const host::StreamLog& log)
    : gpu_(std::move(gpu)), arithmetic_(arithmetic), log_(log), copies_(gpu_) {
  constexpr auto kBytes = kPartials * static_cast<std::int64_t>(sizeof(double));
  for (std::size_t role = 0; role < Gpu::kRoles; ++role)
    partials_.emplace_back(gpu_, kBytes, Placement::device);
  ZP_CUDA(cudaStreamSynchronize(gpu_->compute()));  // every stream may use them
}

Strided CudaKernels::target(Stream& stream, const Span& target) const {
  log_.write(stream, target);
  host::note_write(target);
  if (target.is_empty()) return strided(target);
  DeviceBuffer* const buffer = buffer_of(*target.tensor);
  ZP_CHECK(buffer != nullptr, "a kernel writes to elements that the host keeps");
  buffer->use_on(handle(stream));
  return strided(target);
}

void CudaKernels::fill(Stream& stream, const Span& span, double value) {
  ZP_CUDA(launch_fill(native(stream), target(stream, span), value));
}

void CudaKernels::copy(Stream& stream, const Span& to, const Span& from, double factor) {
  check_equal_length(to, from);
  const Source source(*this, stream, from);
  const Strided view = target(stream, to);
  if (factor == 1.0 && are_bytes(to, from)) {
    if (!gpu_->may_overtake(to.tensor->storage.get(), from.tensor->storage.get()))
      return copies_.add(handle(stream), to, from);
    gpu_->note_work(handle(stream));
    ZP_CUDA(launch_copy(handle(stream), view, source.view(), factor));
    return;
  }
  ZP_CUDA(launch_copy(native(stream), view, source.view(), factor));
}

void CudaKernels::add(Stream& stream, const Span& to, const Span& from, double factor) {
  check_equal_length(to, from);
  const Source source(*this, stream, from);
  ZP_CUDA(launch_add(native(stream), target(stream, to), source.view(), factor));
}

void CudaKernels::scale(Stream& stream, const Span& span, double factor) {
  ZP_CUDA(launch_scale(native(stream), target(stream, span), factor));
}

void CudaKernels::divide(Stream& stream, const Span& span, double divisor) {
  ZP_CUDA(launch_divide(native(stream), target(stream, span), divisor));
}

void CudaKernels::add_squares(Stream& stream, const Span& to, const Span& from) {
  const Source source(*this, stream, from);
  ZP_CUDA(launch_add_squares(native(stream), target(stream, to.part(0, 1)), source.view(),
                             partials(stream)));
}

void CudaKernels::count_non_finite(Stream& stream, const Span& to, const Span& from) {
  const Source source(*this, stream, from);
  ZP_CUDA(launch_count_non_finite(native(stream), target(stream, to.part(0, 1)), source.view(),
                                  partials(stream)));
}

double* CudaKernels::partials(Stream& stream) const {
  return reinterpret_cast<double*>(partials_[gpu_->role_of(handle(stream))].data());
}

Strided CudaKernels::updated(Stream& stream, const Span& span, std::int64_t elements) const {
  ZP_CHECK(span.elements == elements, "an update of spans of different lengths");
  const Strided view = target(stream, span);
  ZP_CHECK(view.dims == 1, "an update of a tensor with gaps");
  return view;
}

void CudaKernels::adam(Stream& stream, const AdamUpdate& update) {
  const std::int64_t elements = update.parameter.elements;
  check_equal_length(update.parameter, update.grad);
  const Source grad(*this, stream, update.grad);
  const AdamTensors tensors = {
      updated(stream, update.parameter, elements), grad.view(),
      updated(stream, update.exp_avg, elements), updated(stream, update.exp_avg_sq, elements),
      update.copy.is_empty() ? Strided{} : updated(stream, update.copy, elements)};
  const AdamRule rule = adam_rule(update);
  if (arithmetic_.is_deterministic || !launch_fast_adam(native(stream), tensors, rule))
    ZP_CUDA(launch_adam(native(stream), tensors, rule));
  ZP_CUDA(cudaGetLastError());
  if (updates_) updates_->add(handle(stream), update);
}

void CudaKernels::sgd(Stream& stream, const SgdUpdate& update) {
  const std::int64_t elements = update.parameter.elements;
  const SgdRule rule = sgd_rule(update);
  check_equal_length(update.parameter, update.grad);
  const Source grad(*this, stream, update.grad);
  SgdTensors tensors{updated(stream, update.parameter, elements), grad.view(), {}};
  if (rule.has_momentum)
    tensors.momentum_buffer = updated(stream, update.momentum_buffer, elements);
  ZP_CUDA(launch_sgd(native(stream), tensors, rule));
}

void CudaKernels::clip_factor(Stream& stream, const Span& factor, const Span& squares,
                              const ClipRule& rule) {
  const Source source(*this, stream, squares);
  ZP_CUDA(launch_clip_factor(native(stream), number(target(stream, factor)), number(source.view()),
                             rule));
}

void CudaKernels::scale_by(Stream& stream, const Span& span, const Span& factor) {
  const Source source(*this, stream, factor);
  ZP_CUDA(launch_scale_by(native(stream), target(stream, span), number(source.view())));
}

std::vector<double> CudaKernels::read(Stream& stream, const Span& source) {
  const Source view(*this, stream, source);
  return download(gpu_, view.view(), native(stream));
}

void CudaKernels::write(Stream& stream, const Span& span, const std::vector<double>& values) {
  ZP_CHECK(std::cmp_equal(values.size(), span.elements), "values do not fill the span");
  if (span.is_empty()) return;
  const Tensor source = upload(gpu_, values, {span.elements}, DType::float64, native(stream));
  ZP_CUDA(launch_copy(native(stream), target(stream, span), strided(Span::of(source)), 1.0));
}

}  // namespace zeroproof::cuda
