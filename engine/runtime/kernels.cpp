#include "zeroproof/internal/engine/runtime/kernels.h"

namespace zeroproof {

void Kernels::clip_factor(Stream& stream, const Span& factor, const Span& squares,
                          const ClipRule& rule) {
  const double norm = norm_of_squares(read(stream, squares).front());
  write(stream, factor, {1.0 / divisor_of(rule, norm)});
}

void Kernels::scale_by(Stream& stream, const Span& target, const Span& factor) {
  scale(stream, target, read(stream, factor).front());
}

}  // namespace zeroproof
