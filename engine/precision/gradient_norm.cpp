#include "engine/precision/gradient_norm.h"

#include <algorithm>
#include <cmath>

namespace zeroproof {
namespace {

// Over the ranks that own other shards of the same model.
void reduce_over_model(ZeroContext& context, Span number, ReduceOp op) {
  Stream& stream = context.compute();
  ProcessGroup& data = context.data_group();
  data.wait(data.all_reduce(stream, number, op), stream);
  ProcessGroup& tensor = context.runtime.group(GroupKind::tensor);
  if (tensor.size() > 1) tensor.wait(tensor.all_reduce(stream, number, op), stream);
}

// A number on the device, zero.
Tensor make_number(ZeroContext& context) {
  const Tensor number = context.runtime.memory().allocate(1, DType::float64);
  context.kernels().fill(context.compute(), Span::of(number), 0.0);
  return number;
}

}  // namespace

bool has_overflow(ZeroContext& context, const std::vector<Span>& shards) {
  const Tensor count = make_number(context);
  const Span number = Span::of(count);
  for (const Span& shard : shards)
    context.kernels().count_non_finite(context.compute(), number, shard);
  reduce_over_model(context, number, ReduceOp::max);
  return context.kernels().read(context.compute(), number)[0] > 0.0;
}

double gradient_norm(ZeroContext& context, const std::vector<Span>& shards) {
  const Tensor sum = make_number(context);
  const Span number = Span::of(sum);
  for (const Span& shard : shards) context.kernels().add_squares(context.compute(), number, shard);
  reduce_over_model(context, number, ReduceOp::sum);
  const double norm = std::sqrt(context.kernels().read(context.compute(), number)[0]);
  return std::isfinite(norm) ? norm : -1.0;
}

double unscale_and_clip_divisor(double scale, double norm, double clip) {
  if (clip <= 0.0) return scale;
  constexpr double kUpstreamGuard = 1e-6;  // against a norm of zero
  return scale * std::max(1.0, (norm / scale + kUpstreamGuard) / clip);
}

}  // namespace zeroproof
