#include "tests/peer/support/ddp.h"

#include <cmath>

namespace zeroproof::peer {

Ddp::Ddp(const NetMaker& make, const DdpOptions& options) : options_(options) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    replicas_.push_back(std::make_unique<Replica>(ops_));
    Replica& replica = *replicas_.back();
    replica.module = make();
    replica.parameters = replica.module->named_parameters();
  }
  for (const nn::NamedParameter& parameter : replicas_.front()->parameters) {
    const Tensor& tensor = parameter.tensor;
    const Tensor rounded = Tensor::of(tensor.values(), tensor.sizes(), options.dtype);
    masters_.push_back(Tensor::of(rounded.values(), tensor.sizes(), DType::float32));
    masters_.back().set_requires_grad(tensor.requires_grad());
  }
  if (options.is_sgd) {
    optimizer_ = std::make_unique<optim::Sgd>(ops_, masters_, options.sgd);
  } else {
    optimizer_ = std::make_unique<optim::Adam>(ops_, masters_, options.adam);
  }
  write_back();
}

void Ddp::write_back() {
  for (const auto& replica : replicas_)
    for (std::size_t i = 0; i < masters_.size(); ++i)
      replica->parameters[i].tensor.set_data(
          Tensor::of(masters_[i].values(), masters_[i].sizes(), options_.dtype));
}

void Ddp::run(const Pass& pass) {
  for (std::size_t rank = 0; rank < replicas_.size(); ++rank)
    pass(replicas_[rank]->ag, *replicas_[rank]->module, static_cast<int>(rank));
}

Tensor Ddp::scaled(Autograd& ag, const Tensor& loss) const {
  if (options_.loss_scale == 1.0) return loss;
  return mul(ag, to(ag, loss, DType::float32), options_.loss_scale);
}

std::vector<double> Ddp::average(std::size_t parameter) const {
  std::vector<double> sum;
  for (const auto& replica : replicas_) {
    const Tensor grad = replica->parameters[parameter].tensor.grad();
    if (!grad.is_defined()) continue;
    const std::vector<double> local = grad.values();
    sum.resize(local.size());
    for (std::size_t i = 0; i < local.size(); ++i)
      sum[i] = round_to(DType::float32, sum[i] + local[i]);
  }
  const double divisor =
      options_.loss_scale * (options_.is_mean ? static_cast<double>(options_.ranks) : 1.0);
  for (double& value : sum) value = round_to(DType::float32, value / divisor);
  return sum;
}

FullTensors Ddp::gradients() const {
  FullTensors gradients;
  for (std::size_t i = 0; i < masters_.size(); ++i)
    gradients.push_back({replicas_.front()->parameters[i].name, masters_[i].sizes(), average(i)});
  return gradients;
}

FullTensors Ddp::parameters() const {
  FullTensors parameters;
  for (std::size_t i = 0; i < masters_.size(); ++i)
    parameters.push_back(
        {replicas_.front()->parameters[i].name, masters_[i].sizes(), masters_[i].values()});
  return parameters;
}

double Ddp::clip_factor() const {
  if (options_.max_norm <= 0.0) return 1.0;
  double squares = 0.0;
  for (const FullTensor& gradient : gradients())
    for (const double value : gradient.values) squares += value * value;
  const double factor = options_.max_norm / (std::sqrt(squares) + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

void Ddp::step() {
  const double factor = clip_factor();
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    std::vector<double> gradient = average(i);
    // An engine's flat optimizer updates every trained parameter, with zeros where none came.
    if (gradient.empty() && masters_[i].requires_grad())
      gradient.resize(static_cast<std::size_t>(masters_[i].numel()));
    for (double& value : gradient) value *= factor;
    masters_[i].set_grad(
        gradient.empty() ? Tensor() : Tensor::of(gradient, masters_[i].sizes(), DType::float32));
  }
  optimizer_->step();
  write_back();
  zero_grad();
}

void Ddp::zero_grad() {
  for (const auto& replica : replicas_)
    for (const nn::NamedParameter& parameter : replica->parameters) parameter.tensor.set_grad({});
}

}  // namespace zeroproof::peer
