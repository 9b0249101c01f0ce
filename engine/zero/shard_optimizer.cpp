#include "engine/zero/shard_optimizer.h"

#include <cmath>

namespace zeroproof {
namespace {

std::vector<std::string_view> moment_names(const OptimizerConfig& config) {
  if (config.type != OptimizerType::sgd) return {"exp_avg", "exp_avg_sq"};
  if (config.sgd.momentum != 0.0) return {"momentum_buffer"};
  return {};
}

// An update reads a narrower gradient exactly; only what happens to it before is rounded to it.
bool is_read_as_it_is(const OptimizerConfig& config, DType master, const GradientDivisor& divisor) {
  if (master != DType::float32) return false;
  const bool decays_gradient = config.adam.weight_decay != 0.0 && !config.adam.is_decay_decoupled;
  return divisor.is_one() && config.type != OptimizerType::sgd && !decays_gradient;
}

}  // namespace

Placement optimizer_placement(const ZeroConfig& config) {
  return config.is_offloaded() ? Placement::host : Placement::device;
}

ShardOptimizer::ShardOptimizer(Runtime& runtime, const ZeroConfig& config, std::int64_t elements)
    : runtime_(runtime), config_(config.optimizer), placement_(optimizer_placement(config)) {
  const DType own_dtype = config.master_dtype();
  const DType state_dtype = config.bf16.optimizer_states ? DType::bfloat16 : own_dtype;
  Stream& stream = runtime.stream(StreamRole::compute);
  for (const std::string_view name : moment_names(config_)) {
    const Tensor values = runtime.memory().allocate(elements, state_dtype, placement_);
    runtime.kernels().fill(stream, Span::of(values), 0.0);
    moments_.push_back({name, values});
  }
}

void ShardOptimizer::divide(Stream& stream, Span grad, const GradientDivisor& divisor) const {
  if (divisor.reciprocal.is_defined())
    runtime_.kernels().scale_by(stream, grad, Span::of(divisor.reciprocal));
  else if (!divisor.is_one())
    runtime_.kernels().scale(stream, grad, 1.0 / divisor.number);
}

void ShardOptimizer::step(Stream& stream, Span master, Span grad, const GradientDivisor& divisor,
                          Span lp) {
  begin_step();
  update_part(stream, 0, master, grad, divisor, lp);
}

void ShardOptimizer::update_part(Stream& stream, std::int64_t begin, Span master, Span grad,
                                 const GradientDivisor& divisor, Span lp) {
  Tensor cast;
  if (grad.dtype() != master.dtype() && !is_read_as_it_is(config_, master.dtype(), divisor)) {
    cast = runtime_.memory().allocate(grad.elements, master.dtype(), placement_);
    runtime_.kernels().copy(stream, Span::of(cast), grad);
    grad = Span::of(cast);
  }
  divide(stream, grad, divisor);
  const auto moment = [&](std::size_t index) {
    return Span::of(moments_[index].values, begin, master.elements);
  };
  if (config_.type == OptimizerType::sgd) {
    const Span buffer = moments_.empty() ? Span{} : moment(0);
    std::int64_t step = steps_;
    optim::SgdOptions sgd = config_.sgd;
    runtime_.kernels().sgd(stream, {master, grad, buffer, step, sgd});
    if (!lp.is_empty()) runtime_.kernels().copy(stream, lp, master);
    return;
  }
  optim::AdamOptions options = config_.adam;
  runtime_.kernels().adam(stream, {.parameter = master,
                                   .grad = grad,
                                   .exp_avg = moment(0),
                                   .exp_avg_sq = moment(1),
                                   .step = steps_,
                                   .options = options,
                                   .copy = lp});
}

}  // namespace zeroproof
