#include "engine/zero/shard_optimizer.h"

namespace zeroproof {
namespace {

std::vector<std::string_view> moment_names(const OptimizerConfig& config) {
  if (config.type != OptimizerType::sgd) return {"exp_avg", "exp_avg_sq"};
  if (config.sgd.momentum != 0.0) return {"momentum_buffer"};
  return {};
}

}  // namespace

ShardOptimizer::ShardOptimizer(Runtime& runtime, const OptimizerConfig& config,
                               std::int64_t elements, DType state_dtype, Placement placement)
    : runtime_(runtime), config_(config) {
  Stream& stream = runtime.stream(StreamRole::compute);
  for (const std::string_view name : moment_names(config)) {
    const Tensor values = runtime.memory().allocate(elements, state_dtype, placement);
    runtime.kernels().fill(stream, Span::of(values), 0.0);
    moments_.push_back({name, values});
  }
}

void ShardOptimizer::step(Stream& stream, Span master, Span grad) {
  ++steps_;
  if (config_.type == OptimizerType::sgd) {
    const Span buffer = moments_.empty() ? Span{} : Span::of(moments_[0].values);
    runtime_.kernels().sgd(stream, {master, grad, buffer, steps_, config_.sgd});
    return;
  }
  runtime_.kernels().adam(stream, {.parameter = master,
                                   .grad = grad,
                                   .exp_avg = Span::of(moments_[0].values),
                                   .exp_avg_sq = Span::of(moments_[1].values),
                                   .step = steps_,
                                   .options = config_.adam});
}

}  // namespace zeroproof
