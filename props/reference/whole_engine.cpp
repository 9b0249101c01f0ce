#include "props/reference/whole_engine.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"
#include "model/optim/sgd.h"
#include "model/wide.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof::reference {
namespace {

constexpr double kFirstGradScale = 65536.0;
constexpr int kGrowthSteps = 2000;

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

LearningRates rates_of(const ZeroConfig& config, std::size_t groups) {
  auto rates = LearningRates::make(config, groups);
  ZP_CHECK(rates, "the configuration was checked with the groups of the program");
  return std::move(*rates);
}

Tensor copy(const Tensor& x) {
  return x.is_defined() ? Tensor::of(x.values(), x.sizes(), x.dtype()).on(x.device()) : x;
}

}  // namespace

WholeEngine::WholeEngine(nn::Module& module, const ZeroConfig& config, const Ops& ops,
                         const Options& options)
    : module_(&module),
      config_(config),
      ops_(&ops),
      replicas_(options.replicas),
      state_{.parameters = {}, .rates = rates_of(config, 1)} {
  const bool is_sum = config.gradient_allreduce_op == GradientAllreduceOp::sum;
  divisor_ = is_sum ? 1.0 : static_cast<double>(replicas_.ranks) / replicas_.sequence;
  add_parameters(options);
  window_.resize(state_.parameters.size());
  if (has_grad_scaler()) state_.scale = kFirstGradScale;
  if (options.grows_in != 0) state_.good_steps = kGrowthSteps - options.grows_in;
  if (config.fp16.enabled) {
    state_.scale = config.fp16.loss_scale != 0.0 ? config.fp16.loss_scale
                                                 : std::ldexp(1.0, config.fp16.initial_scale_power);
    state_.hysteresis = config.fp16.hysteresis;
  }
  if (options.loss_scale) override_loss_scale(*options.loss_scale);
}

// Parameters go to the groups in turns, as engines get them.
void WholeEngine::add_parameters(const Options& options) {
  const DType dtype = config_.model_dtype();
  TensorList listed;
  for (const nn::NamedParameter& named : module_->named_parameters()) {
    const Tensor& tensor = named.tensor;
    tensor.set_data(tensor.dtype() != dtype ? ops_->cast(tensor, dtype) : ops_->place(tensor));
    const auto is_prefix = [&](const std::string& prefix) {
      return named.name.starts_with(prefix);
    };
    if (std::ranges::any_of(options.ungrouped, is_prefix)) continue;
    const auto is_same = [&](const Tensor& known) { return known.is_same(tensor); };
    const bool is_listed = tensor.requires_grad() || options.lists_frozen;
    if (!is_listed || std::ranges::any_of(listed, is_same)) continue;
    listed.push_back(tensor);
    if (!tensor.requires_grad()) continue;
    state_.parameters.push_back({.name = named.name,
                                 .parameter = tensor,
                                 .communication_dtype = communication_dtype_of(tensor),
                                 .master = ops_->cast(tensor, config_.master_dtype()),
                                 .group = (listed.size() - 1) % options.groups});
  }
  state_.rates = rates_of(config_, std::clamp<std::size_t>(listed.size(), 1, options.groups));
}

// torch.amp's.
bool WholeEngine::has_grad_scaler() const {
  return config_.torch_autocast.enabled && config_.torch_autocast.dtype == DType::float16;
}

bool WholeEngine::needs_scaler() const {
  return config_.fp16.enabled || has_grad_scaler() || is_scale_given_;
}

bool WholeEngine::moves_scale() const {
  const bool is_dynamic = config_.fp16.enabled && config_.fp16.loss_scale == 0.0;
  return !is_scale_given_ && (is_dynamic || has_grad_scaler());
}

void WholeEngine::override_loss_scale(double loss_scale) {
  state_.scale = loss_scale;
  is_scale_given_ = true;
}

// Under autocast, parameters of linear layers travel in its dtype (docs/spec/zero.md 6.1); stage 0
// reduces gradients as they are (docs/spec/zero.md 2.7).
DType WholeEngine::communication_dtype_of(const Tensor& parameter) const {
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
Tensor WholeEngine::gathered(const Tensor& parameter) const {
  if (config_.stage != 3 || !config_.torch_autocast.enabled) return parameter;
  return ops_->cast(ops_->cast(parameter, communication_dtype_of(parameter)), parameter.dtype());
}

// --- gradients ----------------------------------------------------------------------------------

bool WholeEngine::collect(TensorList& sums, double factor) const {
  bool has_gradients = false;
  sums.resize(state_.parameters.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Tensor arrived = state_.parameters[i].parameter.grad();
    if (!arrived.is_defined()) continue;
    has_gradients = true;
    const Tensor grad = scaled(*ops_, arrived, factor, arrived.dtype());
    const DType dtype = config_.accumulation_dtype();
    sums[i] = sums[i].is_defined() ? sum(*ops_, sums[i], grad, dtype) : ops_->cast(grad, dtype);
  }
  clear_grads();
  return has_gradients;
}

void WholeEngine::clear_grads() const {
  for (const nn::NamedParameter& named : module_->named_parameters()) named.tensor.set_grad({});
}

TensorList WholeEngine::grads() const {
  TensorList grads;
  for (const nn::NamedParameter& named : module_->named_parameters())
    grads.push_back(copy(named.tensor.grad()));
  return grads;
}

void WholeEngine::set_grads(const TensorList& grads) const {
  std::size_t next = 0;
  for (const nn::NamedParameter& named : module_->named_parameters())
    named.tensor.set_grad(next < grads.size() ? grads[next++] : Tensor());
}

void WholeEngine::reduce(const std::vector<TensorList>& of_ranks) {
  for (std::size_t i = 0; i < state_.parameters.size(); ++i) {
    TensorList sums;
    for (const TensorList& rank : of_ranks) sums.push_back(i < rank.size() ? rank[i] : Tensor());
    const auto has_gradient = [](const Tensor& grad) { return grad.is_defined(); };
    if (std::ranges::none_of(sums, has_gradient)) continue;
    const Tensor gradient = reduced(state_.parameters[i], sums);
    const DType dtype = config_.accumulation_dtype();
    window_[i] = window_[i].is_defined() ? sum(*ops_, window_[i], gradient, dtype)
                                         : ops_->cast(gradient, dtype);
  }
}

// Where ranks that share sequences join in (docs/spec/zero.md 2.17).
bool WholeEngine::sums_in_float32() const {
  const bool is_whole = !config_.reduce_scatter || config_.use_multi_rank_bucket_allreduce;
  return replicas_.sequence > 1 && (config_.stage == 1 || config_.stage == 2) && is_whole;
}

// Rank by rank, from the first to the last.
Tensor WholeEngine::reduced(const WholeParameter& trained, const TensorList& of_ranks) const {
  const DType narrow = trained.communication_dtype;
  const DType wire = sums_in_float32() ? DType::float32 : narrow;
  const bool divides_first = config_.stage != 0;
  Tensor total;
  for (const Tensor& grad : of_ranks) {
    Tensor sent = grad.is_defined() ? grad : Tensor::full(trained.parameter.sizes(), 0.0, wire);
    if (divides_first && divisor_ != 1.0) sent = divided(*ops_, sent, divisor_, sent.dtype());
    sent = ops_->cast(sent, wire);
    total = total.is_defined() ? sum(*ops_, total, sent, wire) : sent;
  }
  total = ops_->cast(total, narrow);
  if (!divides_first && divisor_ != 1.0) total = scaled(*ops_, total, 1.0 / divisor_, narrow);
  return total;
}

// A parameter without a gradient counts as zero.
void WholeEngine::fill_window() {
  for (std::size_t i = 0; i < window_.size(); ++i)
    if (!window_[i].is_defined())
      window_[i] =
          Tensor::full(state_.parameters[i].parameter.sizes(), 0.0, config_.accumulation_dtype());
}

std::vector<FullTensor> WholeEngine::gradients() {
  const TensorList before = window_;
  fill_window();
  std::vector<FullTensor> gradients;
  for (std::size_t i = 0; i < window_.size(); ++i) {
    gradients.push_back(full(state_.parameters[i].name, window_[i]));
    for (double& value : gradients.back().values) value /= state_.scale;
  }
  window_ = before;
  return gradients;
}

// --- the update ---------------------------------------------------------------------------------

StepOutcome WholeEngine::step() {
  fill_window();
  const double scale = state_.scale;
  StepOutcome outcome;
  outcome.has_overflow = overflows();
  update_scale(outcome.has_overflow);
  if (!outcome.has_overflow) {
    outcome.grad_norm = norm() / scale;
    const double clip = config_.gradient_clipping;
    const double excess = clip > 0.0 ? (*outcome.grad_norm + 1e-6) / clip : 0.0;
    const double divisor = scale * std::max(1.0, excess);
    for (std::size_t i = 0; i < window_.size(); ++i)
      update(state_.parameters[i], window_[i], 1.0 / divisor);
    outcome.is_applied = true;
    state_.rates.step();
  }
  drop_window();
  return outcome;
}

bool WholeEngine::overflows() const {
  const bool checks_bf16 = config_.bf16.enabled && config_.bf16.check_grad_overflow &&
                           (config_.stage == 1 || config_.stage == 2);
  const bool is_unasked = config_.bf16.enabled && !config_.bf16.check_grad_overflow;
  if (!needs_scaler() && !checks_bf16) return !is_unasked && norm() < 0.0;
  return !std::ranges::all_of(window_, is_finite);
}

// The dynamic fp16 scale of docs/spec/zero.md 2.19.
void WholeEngine::update_scale(bool has_overflow) {
  const Fp16Config& fp16 = config_.fp16;
  if (!moves_scale()) return;
  if (has_grad_scaler()) return update_grad_scaler(has_overflow);
  if (has_overflow) {
    if (fp16.hysteresis == 1 || state_.hysteresis == 1)
      state_.scale = std::max(state_.scale / 2.0, fp16.min_loss_scale);
    else
      --state_.hysteresis;
    state_.last_overflow = state_.iteration;
  } else {
    const std::int64_t stable = state_.iteration - state_.last_overflow - 1;
    const bool grows = stable > 0 && stable % fp16.loss_scale_window == 0;
    if (fp16.consecutive_hysteresis || grows) state_.hysteresis = fp16.hysteresis;
    if (grows) state_.scale *= 2.0;
  }
  ++state_.iteration;
}

void WholeEngine::update_grad_scaler(bool has_overflow) {
  if (has_overflow) state_.scale /= 2.0;
  state_.good_steps = has_overflow ? 0 : state_.good_steps + 1;
  if (state_.good_steps < kGrowthSteps) return;
  state_.scale *= 2.0;
  state_.good_steps = 0;
}

double WholeEngine::norm() const {
  double squares = 0.0;
  for (const Tensor& gradient : window_)
    for (const double value : gradient.values()) squares += value * value;
  const double norm = std::sqrt(squares * replicas_.tensor);
  return std::isfinite(norm) ? norm : -1.0;
}

void WholeEngine::update(WholeParameter& trained, const Tensor& gradient, double factor) {
  const DType master = config_.master_dtype();
  const Tensor grad = scaled(*ops_, ops_->cast(gradient, master), factor, master);
  const OptimizerConfig optimizer =
      with_rates(config_.optimizer, state_.rates.groups()[trained.group]);
  if (optimizer.type == OptimizerType::sgd)
    optim::Sgd::update(*ops_, trained.master, grad, trained.momentum_buffer, optimizer.sgd);
  else
    optim::Adam::update(*ops_, trained.master, grad, trained.adam, optimizer.adam);
  ++trained.steps;
  ops_->copy_in_place(trained.parameter.detach(),
                      ops_->cast(trained.master, trained.parameter.dtype()));
}

void WholeEngine::count_step(const StepOutcome& outcome, std::int64_t micro_batches) {
  ++state_.global_steps;
  if (outcome.has_overflow) ++state_.skipped_steps;
  state_.global_samples += config_.train_micro_batch_size_per_gpu * replicas_.ranks * micro_batches;
}

// --- values -------------------------------------------------------------------------------------

std::vector<FullTensor> WholeEngine::masters() const {
  std::vector<FullTensor> all;
  for (const WholeParameter& trained : state_.parameters)
    all.push_back(full(trained.name, trained.master));
  return all;
}

// Moments are there from the beginning, as in engines: zeros until a step is applied.
std::vector<FullTensor> WholeEngine::optimizer_state() const {
  std::vector<FullTensor> all;
  for (const WholeParameter& trained : state_.parameters) {
    all.push_back({trained.name + "/step", {}, {static_cast<double>(trained.steps)}});
    const auto add = [&](const char* moment, const Tensor& tensor) {
      const Tensor fresh = Tensor::full(trained.parameter.sizes(), 0.0, config_.master_dtype());
      all.push_back(full(trained.name + moment, tensor.is_defined() ? tensor : fresh));
    };
    if (config_.optimizer.type == OptimizerType::sgd) {
      if (config_.optimizer.sgd.momentum != 0.0) add("/momentum_buffer", trained.momentum_buffer);
      continue;
    }
    add("/exp_avg", trained.adam.exp_avg);
    add("/exp_avg_sq", trained.adam.exp_avg_sq);
  }
  return all;
}

std::vector<FullTensor> WholeEngine::weights() const {
  std::vector<FullTensor> all;
  for (const nn::NamedParameter& named : module_->named_parameters())
    all.push_back(full(named.name, gathered(named.tensor)));
  return all;
}

std::vector<double> WholeEngine::counters() const {
  return {static_cast<double>(state_.micro_steps), static_cast<double>(state_.global_steps),
          static_cast<double>(state_.skipped_steps), static_cast<double>(state_.global_samples),
          state_.scale};
}

// --- checkpoints --------------------------------------------------------------------------------

WholeState WholeEngine::save() const {
  WholeState saved = state_;
  for (WholeParameter& trained : saved.parameters) {
    trained.master = copy(trained.master);
    trained.momentum_buffer = copy(trained.momentum_buffer);
    trained.adam.exp_avg = copy(trained.adam.exp_avg);
    trained.adam.exp_avg_sq = copy(trained.adam.exp_avg_sq);
  }
  saved.weights.clear();  // those of the checkpoint that was loaded last
  for (const nn::NamedParameter& named : module_->named_parameters())
    saved.weights.push_back(named.tensor.values());
  return saved;
}

// Parameters are this engine's own; what is configured or the user's stays.
void WholeEngine::load(const WholeState& state) {
  const std::vector<WholeParameter> own = state_.parameters;
  const double scale = state_.scale;
  state_ = state;
  const bool is_dynamic = config_.fp16.enabled && config_.fp16.loss_scale == 0.0;
  if (is_scale_given_ || !(is_dynamic || has_grad_scaler())) state_.scale = scale;
  ZP_CHECK(own.size() == state.parameters.size(), "a checkpoint has the engine's parameters");
  std::size_t next = 0;
  for (const nn::NamedParameter& named : module_->named_parameters())
    ops_->copy_in_place(
        named.tensor.detach(),
        Tensor::of(state.weights.at(next++), named.tensor.sizes(), named.tensor.dtype()));
  for (std::size_t i = 0; i < own.size(); ++i) {
    WholeParameter& trained = state_.parameters[i];
    trained.parameter = own[i].parameter;
    trained.group = own[i].group;
    trained.communication_dtype = own[i].communication_dtype;
    trained.master = copy(trained.master);
    trained.momentum_buffer = copy(trained.momentum_buffer);
    trained.adam.exp_avg = copy(trained.adam.exp_avg);
    trained.adam.exp_avg_sq = copy(trained.adam.exp_avg_sq);
    ops_->copy_in_place(trained.parameter.detach(),
                        ops_->cast(trained.master, trained.parameter.dtype()));
  }
  drop_window();
}

}  // namespace zeroproof::reference
