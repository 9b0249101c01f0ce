#include "engine/runtime/host/elements.h"

#include <fmt/format.h>

#include "model/check.h"

namespace zeroproof::host {
namespace {

bool has_no_gaps(const TensorImpl& tensor) {
  std::int64_t expected = 1;
  for (std::size_t d = tensor.sizes.size(); d-- > 0;) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.sizes[d];
  }
  return true;
}

bool has_storage(Span span) {
  return span.tensor->storage != nullptr;
}

}  // namespace

bool is_dense(Span span) {
  ZP_CHECK(has_storage(span), "a span of a batched tensor");
  const std::int64_t available = numel(span.tensor->sizes);
  ZP_CHECK(span.begin >= 0 && span.elements >= 0 && span.begin + span.elements <= available,
           fmt::format("a span of elements [{}, {}) of a tensor of {}", span.begin,
                       span.begin + span.elements, available));
  if (has_no_gaps(*span.tensor)) return true;
  ZP_CHECK(span.begin == 0 && span.elements == available, "a part of a tensor with gaps");
  return false;
}

// Also for a dense part, which may stand beside a strided tensor: its index is where it begins.
Cursor::Cursor(Span span)
    : tensor_(*span.tensor),
      elements_(span.tensor->storage->elements.data()),
      offset_(span.tensor->offset_elements) {
  ZP_CHECK(tensor_.sizes.size() <= kDimsMax, "a tensor of more than 16 dimensions");
  std::int64_t rest = span.begin;
  for (std::size_t d = tensor_.sizes.size(); d-- > 0;) {
    index_[d] = rest % tensor_.sizes[d];
    rest /= tensor_.sizes[d];
    offset_ += index_[d] * tensor_.strides[d];
  }
}

void Cursor::next() {
  for (std::size_t d = tensor_.sizes.size(); d-- > 0;) {
    offset_ += tensor_.strides[d];
    if (++index_[d] < tensor_.sizes[d]) return;
    offset_ -= tensor_.strides[d] * tensor_.sizes[d];
    index_[d] = 0;
  }
}

void note_write(Span span) {
  if (span.is_empty()) return;
  ZP_CHECK(has_storage(span), "a write to a batched tensor");
  Storage& storage = *span.tensor->storage;
  if (!storage.lease) ++storage.version;
}

}  // namespace zeroproof::host
