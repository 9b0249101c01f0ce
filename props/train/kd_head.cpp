#include "props/train/kd_head.h"

#include <utility>

#include "model/autocast/custom_fwd_bwd.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

class Kd final : public nn::Module {
 public:
  Kd(const ModelOptions& options, KdMoment moment, bool is_checkpointed)
      : watch_(options.watch), is_checkpointed_(is_checkpointed) {
    nn::InitStream init(options.seed);
    l1_ = register_module("l1", std::make_shared<Layer>(init, options.data, LayerSizes{4, 6}));
    head_ = register_module("head", std::make_shared<KdHead>(init, options.data, moment));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const TensorList h = (*l1_)(ag, inputs);
    if (!is_checkpointed_) return (*head_)(ag, h);
    const auto body = [&ag, head = head_.get(), watch = watch_](const TensorList& given) {
      const auto run = [&] { return (*head)(ag, given); };
      return watch ? watch->run_checkpoint("head", run) : run();
    };
    return checkpoint(ag, CheckpointKind::reentrant, body, h);
  }

 private:
  ProgramWatch* watch_;
  bool is_checkpointed_;
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<KdHead> head_;
};

}  // namespace

KdHead::KdHead(nn::InitStream& init, DataMode data, KdMoment moment)
    : data_(data),
      moment_(moment),
      weight_(register_parameter("weight", init.kaiming({3, 6}, 6, DType::float32))) {}

TensorList KdHead::forward(Autograd& ag, const TensorList& inputs) const {
  TensorList given = inputs;
  given.push_back(weight_);
  if (moment_ == KdMoment::never) return {loss(ag, given)};
  const bool is_early = moment_ == KdMoment::forward;
  return apply_function(ag, is_early ? early_function(ag) : late_function(ag), given);
}

// Real: the mean of squares of h W^T. Exact: mean(h) + c * sum(W).
Tensor KdHead::loss(Autograd& ag, const TensorList& given) const {
  const Tensor& h = given.at(0);
  if (data_ == DataMode::exact)
    return add(ag, mean(ag, h), mul(ag, given.at(1), sum(ag, given.back())));
  const Tensor y = matmul(ag, h, t(ag, given.back()));
  return mean(ag, mul(ag, y, y));
}

func::GradAndValue KdHead::differentiate(Autograd& ag, const TensorList& given) const {
  func::GradOptions options;
  options.argnums = {0, static_cast<std::int64_t>(given.size()) - 1};
  return func::grad_and_value(
      ag, [&](const TensorList& args) { return TensorList{loss(ag, args)}; }, given, options);
}

CustomFunction KdHead::early_function(Autograd& ag) const {
  return {"FusedKdLossBackward",
          [this, &ag](FunctionContext& context, const TensorList& given) {
            const func::GradAndValue made = differentiate(ag, given);
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

// Its backward computes the loss again, and so needs the autocast state of its forward.
CustomFunction KdHead::late_function(Autograd& ag) const {
  CustomFunction function{"LateKdLossBackward",
                          [this, &ag](FunctionContext& context, const TensorList& given) {
                            context.save_for_backward(given);
                            return TensorList{loss(ag, given)};
                          },
                          [this, &ag](FunctionContext& context, const TensorList& grads) {
                            const TensorList saved = context.saved_tensors();
                            const func::GradAndValue made = differentiate(ag, saved);
                            TensorList result(saved.size());
                            result.front() = mul(ag, made.grads.at(0), grads.at(0));
                            result.back() = mul(ag, made.grads.at(1), grads.at(0));
                            return result;
                          }};
  const DeviceType device = weight_.device().type();
  return custom_bwd(ag, custom_fwd(ag, std::move(function), device), device);
}

std::shared_ptr<nn::Module> make_kd_model(ModelKind kind, const ModelOptions& options) {
  switch (kind) {
    case ModelKind::kd:
      return std::make_shared<Kd>(options, KdMoment::forward, false);
    case ModelKind::kd_late:
      return std::make_shared<Kd>(options, KdMoment::backward, false);
    case ModelKind::kd_reentrant:
      return std::make_shared<Kd>(options, KdMoment::forward, true);
    case ModelKind::kd_plain:
      return std::make_shared<Kd>(options, KdMoment::never, false);
    default:
      return nullptr;
  }
}

}  // namespace zeroproof::train
