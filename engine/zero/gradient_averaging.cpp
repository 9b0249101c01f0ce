#include "engine/zero/gradient_averaging.h"

namespace zeroproof {

void GradientAveraging::prepare(Kernels& kernels, Stream& stream, const Span& data) const {
  if (divides_before != 1.0) kernels.divide(stream, data, divides_before);
  if (scales_before != 1.0) kernels.scale(stream, data, scales_before);
}

void GradientAveraging::finish(Kernels& kernels, Stream& stream, const Span& data) const {
  if (scales_after != 1.0) kernels.scale(stream, data, scales_after);
}

}  // namespace zeroproof
