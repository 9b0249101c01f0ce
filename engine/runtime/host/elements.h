#pragma once

#include <array>
#include <cstdint>

#include "zeroproof/internal/engine/runtime/span.h"

namespace zeroproof::host {

// Whether the elements of the span are contiguous. CheckFailed for a span that leaves its
// tensor, or is a part of one that has gaps.
bool is_dense(Span span);

// Where a dense span begins.
inline double* begin_of(Span span) {
  const std::int64_t offset = span.tensor->offset_elements + span.begin;
  return span.tensor->storage->elements.data() + offset;
}

// Walks a whole strided tensor in row-major order, without memory of its own on the heap.
class Cursor {
 public:
  explicit Cursor(Span span);
  double& operator*() const { return elements_[offset_]; }
  void next();

 private:
  static constexpr std::size_t kDimsMax = 16;
  const TensorImpl& tensor_;
  double* elements_;
  std::int64_t offset_;
  std::array<std::int64_t, kDimsMax> index_{};
};

// visit(double& element)
template <class Visit>
void for_each_element(Span span, Visit visit) {
  if (span.is_empty()) return;
  if (is_dense(span)) {
    double* const elements = begin_of(span);
    for (std::int64_t i = 0; i < span.elements; ++i) visit(elements[i]);
    return;
  }
  Cursor at(span);
  for (std::int64_t i = 0; i < span.elements; ++i, at.next()) visit(*at);
}

// visit(double& target, double source); both have as many elements.
template <class Visit>
void for_each_pair(Span target, Span source, Visit visit) {
  if (target.is_empty()) return;
  if (is_dense(target) && is_dense(source)) {
    double* const to = begin_of(target);
    const double* const from = begin_of(source);
    for (std::int64_t i = 0; i < target.elements; ++i) visit(to[i], from[i]);
    return;
  }
  Cursor to(target);
  Cursor from(source);
  for (std::int64_t i = 0; i < target.elements; ++i, to.next(), from.next()) visit(*to, *from);
}

// To be called after a write. The engine's own buffers are what upstream reaches through
// `.data`, which the graph's check of versions does not see (rule S2); a user's storage is not.
void note_write(Span span);

}  // namespace zeroproof::host
