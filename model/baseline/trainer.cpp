#include "model/baseline/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/optim/clip.h"
#include "model/wide.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::baseline {

Trainer::Trainer(Autograd& autograd, optim::Optimizer& optimizer,
                 std::vector<NamedTensor> parameters, const TrainerOptions& options)
    : autograd_(autograd),
      optimizer_(optimizer),
      parameters_(std::move(parameters)),
      options_(options) {}

StepRecord Trainer::step(const std::vector<LossFunction>& micro_batches) {
  StepRecord record;
  accumulate(micro_batches, record);
  unscale(record);
  record.gradients = gradients();
  if (options_.max_norm) {
    const TensorList& all = optimizer_.parameters();
    record.grad_norm = optim::clip_grad_norm(autograd_.ops(), all, *options_.max_norm).item();
  }
  if (!record.is_skipped) optimizer_.step();
  for (const NamedTensor& parameter : parameters_)
    record.parameters.push_back({parameter.name, parameter.tensor.values()});
  record.optimizer_state = optimizer_state();
  optimizer_.zero_grad(options_.zero_grad);
  return record;
}

void Trainer::accumulate(const std::vector<LossFunction>& micro_batches, StepRecord& record) {
  const auto count = static_cast<double>(micro_batches.size());
  for (const LossFunction& micro_batch : micro_batches) {
    Tensor loss = micro_batch(autograd_);
    record.losses.push_back(loss.item());
    if (options_.is_loss_averaged && count > 1.0) loss = div(autograd_, loss, count);
    if (options_.loss_scale) loss = mul(autograd_, loss, *options_.loss_scale);
    autograd_.backward(loss);
  }
}

// As torch's GradScaler: gradients are multiplied by the inverse, and one that is not finite
// makes the step a no-op.
void Trainer::unscale(StepRecord& record) const {
  if (!options_.loss_scale) return;
  const double inverse = 1.0 / *options_.loss_scale;
  const Ops& ops = autograd_.ops();
  for (const Tensor& parameter : optimizer_.parameters()) {
    const Tensor grad = parameter.grad();
    if (!grad.is_defined()) continue;
    const std::vector<double> values = grad.values();
    const auto is_finite = [](double value) { return std::isfinite(value); };
    if (!std::ranges::all_of(values, is_finite)) record.is_skipped = true;
    ops.copy_in_place(grad, (Wide::of(ops, grad) * inverse).x);
  }
}

std::vector<Values> Trainer::gradients() const {
  std::vector<Values> all;
  for (const NamedTensor& parameter : parameters_) {
    const Tensor grad = parameter.tensor.grad();
    all.push_back({parameter.name, std::nullopt});
    if (grad.is_defined()) all.back().values = grad.values();
  }
  return all;
}

std::vector<StateValues> Trainer::optimizer_state() const {
  std::vector<StateValues> all;
  for (std::size_t i = 0; i < optimizer_.parameters().size(); ++i) {
    StateValues& state = all.emplace_back();
    state.parameter = name_of(optimizer_.parameters()[i]);
    for (const optim::StateEntry& entry : optimizer_.state_entries(i))
      state.entries.push_back({std::string(entry.name), entry.value.values()});
  }
  return all;
}

std::string Trainer::name_of(const Tensor& parameter) const {
  const auto is_it = [&](const NamedTensor& named) { return named.tensor.is_same(parameter); };
  const auto at = std::ranges::find_if(parameters_, is_it);
  return at == parameters_.end() ? std::string() : at->name;
}

}  // namespace zeroproof::baseline
