// Models with a custom autograd Function of their own.
#include "model/custom_function.h"
#include "props/train/models.h"
#include "props/train/tiled_model.h"
#include "zeroproof/model/functions.h"

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
    case ModelKind::tiled_kd:
      return make_tiled_model(options, {.has_late_transform = true});
    default:
      return nullptr;
  }
}

}  // namespace zeroproof::train
