#include "engine/zero/whole_values.h"

namespace zeroproof {

std::vector<double> gather_slices(const ZeroContext& context, const Span& slice) {
  Stream& stream = context.compute();
  Memory& memory = context.runtime.memory();
  ProcessGroup& ranks = context.data.group();
  const Tensor own = memory.allocate(slice.elements, slice.dtype());
  context.kernels().copy(stream, Span::of(own), slice);
  const Tensor all = memory.allocate(slice.elements * ranks.size(), slice.dtype());
  ranks.wait(ranks.all_gather(stream, Span::of(all), Span::of(own)), stream);
  return context.kernels().read(stream, Span::of(all));
}

}  // namespace zeroproof
