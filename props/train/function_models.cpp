// Models with a custom autograd Function of their own.
#include "model/custom_function.h"
#include "model/functions.h"
#include "model/transforms/transforms.h"
#include "props/train/models.h"
#include "props/train/tiled_model.h"

namespace zeroproof::train {
namespace {

// x * w, whose backward gives no gradient to w.
TensorList times_without_gradient(Autograd& ag, const TensorList& inputs) {
  const CustomFunction function{
      "NoneGradBackward",
      [&ag](FunctionContext& context, const TensorList& given) {
        context.save_for_backward({given.at(1)});
        return TensorList{mul(ag, given.at(0), given.at(1))};
      },
      [&ag](FunctionContext& context, const TensorList& grads) {
        return TensorList{mul(ag, grads.at(0), context.saved_tensors().at(0)), Tensor()};
      }};
  return apply_function(ag, function, inputs);
}

// "w" is in the graph, but its gradient is undefined.
class UndefinedGrad final : public nn::Module {
 public:
  explicit UndefinedGrad(const ModelOptions& options)
      : data_(options.data),
        w_(register_parameter("w", nn::constant_parameter(width(), 1.0, DType::float32))) {
    nn::InitStream init(options.seed);
    const auto layer = [&](const std::string& name, const LayerSizes& sizes) {
      return register_module(name, std::make_shared<Layer>(init, data_, sizes));
    };
    l1_ = layer("l1", {4, 6});
    l2_ = layer("l2", {6, 2, true, false});
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    TensorList h = (*l1_)(ag, inputs);
    h.at(0) = times_without_gradient(ag, {h.at(0), w_}).at(0);
    return {mean_loss(ag, data_, (*l2_)(ag, h))};
  }

 private:
  // As wide as the activations between the two layers.
  Shape width() const { return {data_ == DataMode::exact ? 1 : 6}; }

  DataMode data_;
  Tensor& w_;
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<Layer> l2_;
};

// x, whose backward throws once.
CustomFunction raise_once(Autograd& ag, const std::shared_ptr<bool>& is_armed) {
  return {"RaiseOnceBackward",
          [&ag](FunctionContext&, const TensorList& given) {
            return TensorList{mul(ag, given.at(0), 1.0)};
          },
          [is_armed](FunctionContext&, const TensorList& grads) {
            if (std::exchange(*is_armed, false)) throw Injected("injected");
            return TensorList{grads.at(0)};
          }};
}

class Raising final : public nn::Module {
 public:
  explicit Raising(const ModelOptions& options) : data_(options.data) {
    nn::InitStream init(options.seed);
    const auto layer = [&](const std::string& name, const LayerSizes& sizes) {
      return register_module(name, std::make_shared<Layer>(init, data_, sizes));
    };
    l1_ = layer("l1", {4, 6});
    l2_ = layer("l2", {6, 3, true, false});
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    TensorList h = (*l1_)(ag, inputs);
    h.at(0) = apply_function(ag, raise_once(ag, is_armed_), {h.at(0)}).at(0);
    return {mean_loss(ag, data_, (*l2_)(ag, h))};
  }

 private:
  DataMode data_;
  std::shared_ptr<bool> is_armed_ = std::make_shared<bool>(true);
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<Layer> l2_;
};

// A head whose distillation loss takes its gradients by grad_and_value over weight and input
// inside the forward of a Function, as fused linear losses do.
class KdHead final : public nn::Module {
 public:
  KdHead(nn::InitStream& init, DataMode data)
      : data_(data),
        weight_(register_parameter("weight", init.kaiming({3, 6}, 6, DType::float32))) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    TensorList given = inputs;
    given.push_back(weight_);
    return apply_function(ag, fused_loss(ag), given);
  }

 private:
  // Real: the mean of squares of h W^T. Exact: mean(h) + c * sum(W).
  Tensor loss(Autograd& ag, const TensorList& given) const {
    const Tensor& h = given.at(0);
    if (data_ == DataMode::exact)
      return add(ag, mean(ag, h), mul(ag, given.at(1), sum(ag, given.back())));
    const Tensor y = matmul(ag, h, t(ag, given.back()));
    return mean(ag, mul(ag, y, y));
  }

  CustomFunction fused_loss(Autograd& ag) const {
    const auto differentiate = [this, &ag](const TensorList& given) {
      const auto last = static_cast<std::int64_t>(given.size()) - 1;
      func::GradOptions options;
      options.argnums = {0, last};
      return func::grad_and_value(
          ag, [&](const TensorList& args) { return TensorList{loss(ag, args)}; }, given, options);
    };
    return {"FusedKdLossBackward",
            [differentiate](FunctionContext& context, const TensorList& given) {
              const func::GradAndValue made = differentiate(given);
              context.set("inputs", given.size());
              context.save_for_backward(made.grads);
              return TensorList{made.value};
            },
            [&ag](FunctionContext& context, const TensorList& grads) {
              const TensorList saved = context.saved_tensors();
              TensorList result(context.get<std::size_t>("inputs"));
              result.front() = mul(ag, saved.at(0), grads.at(0));
              result.back() = mul(ag, saved.at(1), grads.at(0));
              return result;
            }};
  }

  DataMode data_;
  Tensor& weight_;
};

class Kd final : public nn::Module {
 public:
  explicit Kd(const ModelOptions& options) {
    nn::InitStream init(options.seed);
    l1_ = register_module("l1", std::make_shared<Layer>(init, options.data, LayerSizes{4, 6}));
    head_ = register_module("head", std::make_shared<KdHead>(init, options.data));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return (*head_)(ag, (*l1_)(ag, inputs));
  }

 private:
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<KdHead> head_;
};

}  // namespace

std::shared_ptr<nn::Module> make_function_model(ModelKind kind, const ModelOptions& options) {
  switch (kind) {
    case ModelKind::tiled:
      return make_tiled_model(options, {});
    case ModelKind::tiled_reentrant:
      return make_tiled_model(options, {.is_deep = true});
    case ModelKind::untiled:
      return make_tiled_model(options, {.is_ordinary = true});
    case ModelKind::untiled_deep:
      return make_tiled_model(options, {.is_ordinary = true, .is_deep = true});
    case ModelKind::undefined_grad:
      return std::make_shared<UndefinedGrad>(options);
    case ModelKind::raising:
      return std::make_shared<Raising>(options);
    case ModelKind::kd:
      return std::make_shared<Kd>(options);
    default:
      return nullptr;
  }
}

}  // namespace zeroproof::train
