#include "sim/world/held_span.h"

namespace zeroproof::sim {

HeldSpan::HeldSpan(Span span) {
  if (!span.tensor) return;
  const TensorImpl& tensor = *span.tensor;
  impl_ = std::make_shared<TensorImpl>();
  impl_->sizes = tensor.sizes;
  impl_->strides = tensor.strides;
  impl_->offset_elements = tensor.offset_elements;
  impl_->dtype = tensor.dtype;
  impl_->device = tensor.device;
  storage_ = tensor.storage;
  span_ = {impl_.get(), span.begin, span.elements};
}

bool HeldSpan::acquire() {
  if (span_.is_empty()) return true;
  impl_->storage = storage_.lock();
  return impl_->storage != nullptr;
}

void HeldSpan::release() {
  if (impl_) impl_->storage.reset();
}

}  // namespace zeroproof::sim
