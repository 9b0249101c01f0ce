#include "props/train/baseline_engine.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/optim/sgd.h"
#include "model/wide.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof::train {
namespace {

constexpr double kGradScalerScale = 65536.0;
constexpr std::int64_t kGrowthSteps = 2000;  // of a GradScaler

// x times factor, in double, rounded once.
Tensor scaled(const Ops& ops, const Tensor& x, double factor, DType dtype) {
  return (Wide::of(ops, x) * factor).rounded(dtype);
}

Tensor divided(const Ops& ops, const Tensor& x, double divisor, DType dtype) {
  return (Wide::of(ops, x) / divisor).rounded(dtype);
}

Tensor sum(const Ops& ops, const Tensor& a, const Tensor& b, DType dtype) {
  return (Wide::of(ops, a) + Wide::of(ops, b)).rounded(dtype);
}

bool is_finite(const Tensor& x) {
  return std::ranges::all_of(x.values(), [](double value) { return std::isfinite(value); });
}

FullTensor full(const std::string& name, const Tensor& tensor) {
  return {name, tensor.sizes(), tensor.values()};
}

}  // namespace

BaselineEngine::BaselineEngine(std::shared_ptr<nn::Module> module, const ZeroConfig& config,
                               const Ops& ops, int world_size)
    : module_(std::move(module)), config_(config), ops_(ops), world_size_(world_size) {
  const bool is_sum = config_.gradient_allreduce_op == GradientAllreduceOp::sum;
  divisor_ = is_sum ? 1.0 : static_cast<double>(world_size);
  add_trained();
  window_.resize(trained_.size());
  if (has_grad_scaler()) scale_ = kGradScalerScale;
  if (!config.fp16.enabled) return;
  scale_ = config.fp16.loss_scale != 0.0 ? config.fp16.loss_scale
                                         : std::ldexp(1.0, config.fp16.initial_scale_power);
  hysteresis_ = config.fp16.hysteresis;
}

void BaselineEngine::add_trained() {
  const DType dtype = config_.model_dtype();
  TensorList listed;
  for (const nn::NamedParameter& named : module_->named_parameters()) {
    const Tensor& tensor = named.tensor;
    tensor.set_data(tensor.dtype() != dtype ? ops_.cast(tensor, dtype) : ops_.place(tensor));
    const auto is_same = [&](const Tensor& known) { return known.is_same(tensor); };
    if (!tensor.requires_grad() || std::ranges::any_of(listed, is_same)) continue;
    listed.push_back(tensor);
    trained_.push_back({.name = named.name,
                        .parameter = tensor,
                        .communication_dtype = communication_dtype_of(tensor),
                        .master = ops_.cast(tensor, config_.master_dtype()),
                        .adam = {},
                        .momentum_buffer = {}});
  }
  auto rates = LearningRates::make(config_, 1);
  ZP_CHECK(rates, "the configuration was checked");
  rates_ = std::move(*rates);
}

// torch.amp's.
bool BaselineEngine::has_grad_scaler() const {
  return config_.torch_autocast.enabled && config_.torch_autocast.dtype == DType::float16;
}

bool BaselineEngine::needs_scaler() const {
  return config_.fp16.enabled || has_grad_scaler();
}

// Under autocast, parameters of linear layers travel in its dtype (docs/spec/zero.md 6.1); stage 0
// reduces gradients as they are (docs/spec/zero.md 2.7).
DType BaselineEngine::communication_dtype_of(const Tensor& parameter) const {
  if (!config_.torch_autocast.enabled || config_.stage == 0) return config_.communication_dtype();
  const auto& safe = config_.torch_autocast.lower_precision_safe_modules;
  if (safe && std::ranges::find(*safe, "torch.nn.Linear") == safe->end()) return parameter.dtype();
  for (const nn::NamedModule& inner : module_->named_modules()) {
    if (dynamic_cast<const nn::Linear*>(inner.module) == nullptr) continue;
    for (const Tensor* own : inner.module->own_parameters())
      if (own->is_same(parameter)) return config_.torch_autocast.dtype;
  }
  return parameter.dtype();
}

// Stage 3 under autocast gathers in the dtype of the wire (docs/spec/zero.md 6.1).
Tensor BaselineEngine::gathered(const Tensor& parameter) const {
  if (config_.stage != 3 || !config_.torch_autocast.enabled) return parameter;
  return ops_.cast(ops_.cast(parameter, communication_dtype_of(parameter)), parameter.dtype());
}

void BaselineEngine::collect(LocalSums& sums) const {
  sums.resize(trained_.size());
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    const Tensor grad = trained_[i].parameter.grad();
    if (!grad.is_defined()) continue;
    const DType dtype = config_.accumulation_dtype();
    sums[i] = sums[i].is_defined() ? sum(ops_, sums[i], grad, dtype) : ops_.cast(grad, dtype);
  }
  clear_grads();
}

void BaselineEngine::clear_grads() const {
  for (const Trained& trained : trained_) trained.parameter.set_grad({});
}

void BaselineEngine::scale_grads(double factor) const {
  if (factor == 1.0) return;
  for (const Trained& trained : trained_) {
    const Tensor grad = trained.parameter.grad();
    if (grad.is_defined()) trained.parameter.set_grad(scaled(ops_, grad, factor, grad.dtype()));
  }
}

void BaselineEngine::reduce(const std::vector<LocalSums>& ranks) {
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    TensorList of_ranks;
    for (const LocalSums& sums : ranks) of_ranks.push_back(i < sums.size() ? sums[i] : Tensor());
    const auto has_gradient = [](const Tensor& grad) { return grad.is_defined(); };
    if (std::ranges::none_of(of_ranks, has_gradient)) continue;
    const Tensor gradient = reduced(trained_[i], of_ranks);
    const DType dtype = config_.accumulation_dtype();
    window_[i] = window_[i].is_defined() ? sum(ops_, window_[i], gradient, dtype)
                                         : ops_.cast(gradient, dtype);
  }
}

// Rank by rank, from the first to the last.
Tensor BaselineEngine::reduced(const Trained& trained, const TensorList& of_ranks) const {
  const DType narrow = trained.communication_dtype;
  const DType wire = narrow;
  Tensor total;
  for (const Tensor& grad : of_ranks) {
    Tensor sent = grad.is_defined() ? grad : Tensor::full(trained.parameter.sizes(), 0.0, wire);
    if (divides_first() && divisor_ != 1.0) sent = divided(ops_, sent, divisor_, sent.dtype());
    sent = ops_.cast(sent, wire);
    total = total.is_defined() ? sum(ops_, total, sent, wire) : sent;
  }
  total = ops_.cast(total, narrow);
  if (!divides_first() && divisor_ != 1.0) total = scaled(ops_, total, 1.0 / divisor_, narrow);
  return total;
}

// Without managed accumulation, every backward counts as a micro-batch.
void BaselineEngine::count(const StepOutcome& outcome, const WindowCounts& window) {
  counters_.micro_steps += window.micro_steps;
  ++counters_.global_steps;
  if (outcome.has_overflow) ++counters_.skipped_steps;
  const std::int64_t micro_batches = config_.managed_gradient_accumulation
                                         ? config_.gradient_accumulation_steps
                                         : window.backwards;
  counters_.global_samples += config_.train_micro_batch_size_per_gpu * world_size_ * micro_batches;
  counters_.loss_scale = scale_;
}

void BaselineEngine::step(const std::string& prefix, const WindowCounts& window,
                          WindowValues& values) {
  fill_window();
  const double scale = scale_;
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    FullTensor& gradient =
        values.gradients.emplace_back(full(prefix + trained_[i].name, window_[i]));
    for (double& value : gradient.values) value /= scale;
  }
  values.outcomes.push_back(step());
  count(values.outcomes.back(), window);
  values.counters.push_back(counters_.named(prefix));
  for (FullTensor& master : full_parameters()) {
    master.name = prefix + master.name;
    values.parameters.push_back(std::move(master));
  }
  for (const Trained& trained : trained_) append_state(trained, prefix, values);
  for (const nn::NamedParameter& named : module_->named_parameters())
    values.weights.push_back(full(prefix + named.name, gathered(named.tensor)));
}

StepOutcome BaselineEngine::step() {
  fill_window();
  const double scale = scale_;
  StepOutcome outcome;
  outcome.has_overflow = overflows();
  update_scale(outcome.has_overflow);
  if (!outcome.has_overflow) {
    const double norm_scaled = norm();
    outcome.grad_norm = norm_scaled / scale;
    const double clip = config_.gradient_clipping;
    const double excess = clip > 0.0 ? (*outcome.grad_norm + 1e-6) / clip : 0.0;
    const double divisor = scale * std::max(1.0, excess);
    for (std::size_t i = 0; i < trained_.size(); ++i)
      update(trained_[i], window_[i], 1.0 / divisor);
    outcome.is_applied = true;
    rates_.step();
  }
  drop_window();
  return outcome;
}

// A parameter without a gradient counts as zero.
void BaselineEngine::fill_window() {
  for (std::size_t i = 0; i < trained_.size(); ++i)
    if (!window_[i].is_defined())
      window_[i] = Tensor::full(trained_[i].parameter.sizes(), 0.0, config_.accumulation_dtype());
}

std::vector<FullTensor> BaselineEngine::full_parameters() const {
  std::vector<FullTensor> all;
  for (const Trained& trained : trained_) all.push_back(full(trained.name, trained.master));
  return all;
}

bool BaselineEngine::overflows() const {
  const bool checks_bf16 = config_.bf16.enabled && config_.bf16.check_grad_overflow &&
                           (config_.stage == 1 || config_.stage == 2);
  const bool is_unasked = config_.bf16.enabled && !config_.bf16.check_grad_overflow;
  if (!needs_scaler() && !checks_bf16) return !is_unasked && norm() < 0.0;
  return !std::ranges::all_of(window_, is_finite);
}

// The dynamic fp16 scale of docs/spec/zero.md 2.19.
void BaselineEngine::update_scale(bool has_overflow) {
  const Fp16Config& fp16 = config_.fp16;
  if (has_grad_scaler()) return update_grad_scaler(has_overflow);
  if (!fp16.enabled || fp16.loss_scale != 0.0) return;
  if (has_overflow) {
    if (fp16.hysteresis == 1 || hysteresis_ == 1) {
      scale_ = std::max(scale_ / 2.0, fp16.min_loss_scale);
    } else {
      --hysteresis_;
    }
    last_overflow_ = iteration_;
  } else {
    const std::int64_t stable = iteration_ - last_overflow_ - 1;
    const bool grows = stable > 0 && stable % fp16.loss_scale_window == 0;
    if (fp16.consecutive_hysteresis || grows) hysteresis_ = fp16.hysteresis;
    if (grows) scale_ *= 2.0;
  }
  ++iteration_;
}

void BaselineEngine::update_grad_scaler(bool has_overflow) {
  if (has_overflow) scale_ /= 2.0;
  good_steps_ = has_overflow ? 0 : good_steps_ + 1;
  if (good_steps_ < kGrowthSteps) return;
  scale_ *= 2.0;
  good_steps_ = 0;
}

double BaselineEngine::norm() const {
  double squares = 0.0;
  for (const Tensor& gradient : window_)
    for (const double value : gradient.values()) squares += value * value;
  const double norm = std::sqrt(squares);
  return std::isfinite(norm) ? norm : -1.0;
}

void BaselineEngine::update(Trained& trained, const Tensor& gradient, double factor) {
  const DType master = config_.master_dtype();
  const Tensor grad = scaled(ops_, ops_.cast(gradient, master), factor, master);
  const OptimizerConfig optimizer = with_rates(config_.optimizer, rates_.groups().front());
  if (optimizer.type == OptimizerType::sgd) {
    optim::Sgd::update(ops_, trained.master, grad, trained.momentum_buffer, optimizer.sgd);
  } else {
    optim::Adam::update(ops_, trained.master, grad, trained.adam, optimizer.adam);
  }
  ++trained.steps;
  ops_.copy_in_place(trained.parameter.detach(),
                     ops_.cast(trained.master, trained.parameter.dtype()));
}

// Moments are there from the beginning, as in the engines: zeros until a step is applied.
void BaselineEngine::append_state(const Trained& trained, const std::string& prefix,
                                  WindowValues& values) const {
  const std::string name = prefix + trained.name;
  values.states.push_back({name + "/step", {}, {static_cast<double>(trained.steps)}});
  const auto add = [&](const char* moment, const Tensor& tensor) {
    const Tensor fresh = Tensor::full(trained.parameter.sizes(), 0.0, config_.master_dtype());
    values.states.push_back(full(name + moment, tensor.is_defined() ? tensor : fresh));
  };
  if (config_.optimizer.type == OptimizerType::sgd) {
    if (config_.optimizer.sgd.momentum != 0.0) add("/momentum_buffer", trained.momentum_buffer);
    return;
  }
  add("/exp_avg", trained.adam.exp_avg);
  add("/exp_avg_sq", trained.adam.exp_avg_sq);
}

}  // namespace zeroproof::train
