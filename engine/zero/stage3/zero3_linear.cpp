#include "engine/zero/stage3/zero3_linear.h"

#include <exception>
#include <optional>
#include <utility>

#include "model/autocast/autocast.h"
#include "model/autocast/custom_fwd_bwd.h"
#include "model/transforms/layer.h"
#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// What the process's linear is while engines of stage 3 exist.
struct Zero3Linear {
  std::shared_ptr<Zero3Registry> registry;
  LinearFunction original;  // kept once

  Tensor operator()(Autograd& ag, const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    return apply_function(ag, zero3_linear_function(ag, registry, x.device().type()),
                          {x, weight, bias})
        .at(0);
  }
};

// linear() as it is without any replacement, for a while.
class OriginalLinear {
 public:
  explicit OriginalLinear(Autograd& ag) : ag_(ag), replaced_(std::move(ag.global().linear)) {
    if (const auto* ours = replaced_.target<Zero3Linear>()) {
      ag.global().linear = ours->original;
    } else {
      ag.global().linear = replaced_;
    }
  }
  ~OriginalLinear() { ag_.global().linear = std::move(replaced_); }
  OriginalLinear(const OriginalLinear&) = delete;
  OriginalLinear& operator=(const OriginalLinear&) = delete;

 private:
  Autograd& ag_;
  LinearFunction replaced_;
};

// Whole for a while, if it is a parameter that was partitioned.
class GatheredWeight {
 public:
  GatheredWeight(const Zero3Registry& registry, const Tensor& weight) {
    const auto owner = registry.find(weight);
    if (!owner || owner->parameter->is_available()) return;
    is_partitioned_ = owner->parameter->is_partitioned();
    owner_ = *owner;
    owner_.gatherer->gather({owner_.parameter});
  }
  ~GatheredWeight() noexcept(false) {
    const bool is_ours =
        is_partitioned_ && owner_.parameter->is_available() && !owner_.parameter->is_used();
    if (!is_ours) return;
    if (std::uncaught_exceptions() == exceptions_) {
      owner_.gatherer->partition(*owner_.parameter);
      return;
    }
    try {
      owner_.gatherer->partition(*owner_.parameter);
    } catch (const std::exception&) {  // the first error is the one to see
    }
  }
  GatheredWeight(const GatheredWeight&) = delete;
  GatheredWeight& operator=(const GatheredWeight&) = delete;

 private:
  Zero3Registry::Owner owner_;
  bool is_partitioned_ = false;
  int exceptions_ = std::uncaught_exceptions();
};

bool may_need_grad(const Tensor& x) {
  const TensorWrapper* wrapper = x.is_defined() ? x.wrapper() : nullptr;
  return x.is_defined() && (x.requires_grad() || (wrapper && wrapper->kind == TransformKind::vmap));
}

void set_up(FunctionContext& context, const TensorList& inputs) {
  context.save_for_backward(inputs);
  context.set_materialize_grads(false);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    context.set("needs" + std::to_string(i), may_need_grad(inputs[i]));
}

// Counted by the other dimensions: without columns there are rows all the same.
Tensor rows(Autograd& ag, const Tensor& x) {
  const Shape& sizes = x.sizes();
  if (sizes.size() == 2) return x;
  const Shape others(sizes.begin(), sizes.end() - 1);
  return reshape(ag, x, {numel(others), sizes.back()});
}

// A bias has one number a column; its gradient is summed as it came, whatever autocast would do.
// The bias itself may be a placeholder by now.
Tensor bias_grad(Autograd& ag, const Tensor& grad, const Tensor& bias) {
  const Autocast accelerator(ag, DeviceType::accelerator, {.is_enabled = false});
  const Autocast cpu(ag, DeviceType::cpu, {.is_enabled = false});
  const bool is_row = grad.sizes().size() == 1;
  return to(ag, is_row ? grad : sum(ag, rows(ag, grad), {0}, KeepDim::no), bias.dtype());
}

TensorList gradients(Autograd& ag, const FunctionContext& context, const TensorList& saved,
                     const Tensor& grad) {
  const Tensor& x = saved[0];
  const Tensor& weight = saved[1];
  const Tensor& bias = saved[2];
  TensorList grads(3);
  if (context.get<bool>("needs0")) {
    const Tensor product = mm(ag, rows(ag, grad), weight);
    grads[0] = to(ag, x.sizes().size() == 2 ? product : reshape(ag, product, x.sizes()), x.dtype());
  }
  if (context.get<bool>("needs1"))
    grads[1] = to(ag, mm(ag, t(ag, rows(ag, grad)), rows(ag, x)), weight.dtype());
  if (context.get<bool>("needs2")) grads[2] = bias_grad(ag, grad, bias);
  return grads;
}

}  // namespace

void Zero3Registry::add(ParameterGatherer& gatherer) {
  for (PartitionedParameter& parameter : gatherer.parameters())
    owners_[&parameter.parameter().tensor.impl()] = {&gatherer, &parameter};
}

void Zero3Registry::remove(ParameterGatherer& gatherer) {
  std::erase_if(owners_, [&](const auto& entry) { return entry.second.gatherer == &gatherer; });
}

std::optional<Zero3Registry::Owner> Zero3Registry::find(const Tensor& tensor) const {
  Tensor innermost = tensor;
  while (innermost.is_defined() && innermost.wrapper()) innermost = innermost.wrapper()->inner;
  if (!innermost.is_defined()) return std::nullopt;
  const auto at = owners_.find(&innermost.impl());
  if (at == owners_.end()) return std::nullopt;
  return at->second;
}

CustomFunction zero3_linear_function(Autograd& autograd,
                                     const std::shared_ptr<const Zero3Registry>& registry,
                                     DeviceType device) {
  CustomFunction function;
  function.name = "LinearFunctionForZeroStage3Backward";
  function.generates_vmap_rule = true;
  function.forward_alone = [&autograd](const TensorList& inputs) {
    const OriginalLinear original(autograd);
    return TensorList{linear(autograd, inputs.at(0), inputs.at(1), inputs.at(2))};
  };
  function.setup_context = [](FunctionContext& context, const TensorList& inputs,
                              const TensorList&) { set_up(context, inputs); };
  function.backward = [&autograd, registry](FunctionContext& context, const TensorList& grads) {
    if (!grads.at(0).is_defined()) return TensorList(3);
    const TensorList saved = context.saved_tensors();
    const GatheredWeight gathered(*registry, saved[1]);
    TensorList result = gradients(autograd, context, saved, grads[0]);
    return result;
  };
  function =
      custom_bwd(autograd, capture_in_setup_context(autograd, std::move(function), device), device);
  return function;
}

Zero3LinearInstallation::Zero3LinearInstallation(Autograd& autograd, ParameterGatherer& gatherer,
                                                 bool is_installed)
    : autograd_(autograd), gatherer_(gatherer), is_installed_(is_installed) {
  if (!is_installed_) return;
  LinearFunction& current = autograd.global().linear;
  if (!current.target<Zero3Linear>())
    current = Zero3Linear{std::make_shared<Zero3Registry>(), std::move(current)};
  current.target<Zero3Linear>()->registry->add(gatherer);
}

Zero3LinearInstallation::~Zero3LinearInstallation() {
  if (!is_installed_) return;
  LinearFunction& current = autograd_.global().linear;
  Zero3Linear* ours = current.target<Zero3Linear>();
  if (!ours) return;
  ours->registry->remove(gatherer_);
  if (!ours->registry->is_empty()) return;
  LinearFunction original = std::move(ours->original);
  current = std::move(original);
}

}  // namespace zeroproof
