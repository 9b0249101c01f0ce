// Models of plain layers: no checkpoint, no custom Function.
#include "props/train/models.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

// The layers of a model, made in order from one stream of numbers.
class LayerModel : public nn::Module {
 protected:
  explicit LayerModel(const ModelOptions& options) : data_(options.data), init_(options.seed) {}

  std::shared_ptr<Layer> layer(const std::string& name, const LayerSizes& sizes) {
    return register_module(name, std::make_shared<Layer>(init_, data_, sizes));
  }
  Tensor loss(Autograd& ag, const TensorList& outputs) const {
    return mean_loss(ag, data_, outputs);
  }

  DataMode data_;

 private:
  nn::InitStream init_;
};

enum class Output : std::uint8_t { loss, logits, dict, dataclass };

class Mlp final : public LayerModel {
 public:
  Mlp(const ModelOptions& options, std::int64_t inputs, Output output)
      : LayerModel(options),
        l1_(layer("l1", {inputs, 6})),
        l2_(layer("l2", {6, 3, true, false})),
        output_(output) {}

  OutputContainer output_container() const override {
    if (output_ == Output::dataclass) return OutputContainer::dataclass;
    return output_ == Output::dict ? OutputContainer::dict : OutputContainer::tensors;
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    TensorList y = (*l2_)(ag, (*l1_)(ag, inputs));
    if (output_ == Output::logits) return y;
    if (output_ == Output::loss) return {loss(ag, y)};
    return {loss(ag, y), y.at(0), Tensor()};
  }

 private:
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<Layer> l2_;
  Output output_;
};

// An mlp with a third layer "aux" that only the program calls.
class Bypassed final : public LayerModel {
 public:
  explicit Bypassed(const ModelOptions& options)
      : LayerModel(options),
        l1_(layer("l1", {4, 6})),
        l2_(layer("l2", {6, 3, true, false})),
        aux_(layer("aux", {4, 3, true, false})) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {loss(ag, (*l2_)(ag, (*l1_)(ag, inputs)))};
  }

 private:
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<Layer> l2_;
  std::shared_ptr<Layer> aux_;
};

class Frozen final : public LayerModel {
 public:
  explicit Frozen(const ModelOptions& options)
      : LayerModel(options),
        l1_(layer("l1", {4, 6})),
        frozen_(layer("frozen", {6, 6})),
        l2_(layer("l2", {6, 3, true, false})) {
    for (const nn::NamedParameter& parameter : frozen_->named_parameters())
      parameter.tensor.set_requires_grad(false);
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {loss(ag, (*l2_)(ag, (*frozen_)(ag, (*l1_)(ag, inputs))))};
  }

 private:
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<Layer> frozen_;
  std::shared_ptr<Layer> l2_;
};

// Exact data: the second loss counts twice, so that a sum says which of the two are in it.
class TwoLosses final : public LayerModel {
 public:
  explicit TwoLosses(const ModelOptions& options)
      : LayerModel(options),
        trunk_(layer("trunk", {4, 6})),
        ha_(layer("ha", {6, 2, true, false})),
        hb_(layer("hb", {6, 2, true, false})) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const TensorList h = (*trunk_)(ag, inputs);
    const Tensor a = loss(ag, (*ha_)(ag, h));
    const TensorList b = (*hb_)(ag, h);
    if (data_ == DataMode::exact) return {a, mul(ag, loss(ag, b), 2.0)};
    return {a, mean(ag, abs(ag, b.at(0)))};
  }

 private:
  std::shared_ptr<Layer> trunk_;
  std::shared_ptr<Layer> ha_;
  std::shared_ptr<Layer> hb_;
};

class Tied final : public LayerModel {
 public:
  explicit Tied(const ModelOptions& options)
      : LayerModel(options), l_(layer("l", {4, 4})), head_(layer("head", {4, 2, true, false})) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const TensorList once = (*l_)(ag, inputs);
    const TensorList twice = (*l_)(ag, with_factor(ag, data_, once, 2.0));
    return {loss(ag, (*head_)(ag, with_factor(ag, data_, twice, 0.5)))};
  }

 private:
  std::shared_ptr<Layer> l_;
  std::shared_ptr<Layer> head_;
};

class Unused final : public LayerModel {
 public:
  explicit Unused(const ModelOptions& options)
      : LayerModel(options),
        l1_(layer("l1", {4, 6})),
        extra_(layer("extra", {3, 3})),
        l2_(layer("l2", {6, 2, true, false})) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {loss(ag, (*l2_)(ag, (*l1_)(ag, inputs)))};
  }

 private:
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<Layer> extra_;
  std::shared_ptr<Layer> l2_;
};

}  // namespace

std::shared_ptr<nn::Module> make_plain_model(ModelKind kind, const ModelOptions& options) {
  switch (kind) {
    case ModelKind::mlp:
      return std::make_shared<Mlp>(options, 4, Output::loss);
    case ModelKind::logits:
      return std::make_shared<Mlp>(options, 4, Output::logits);
    case ModelKind::stage_pair:
      return std::make_shared<Mlp>(options, 3, Output::loss);
    case ModelKind::dict:
      return std::make_shared<Mlp>(options, 4, Output::dict);
    case ModelKind::dataclass:
      return std::make_shared<Mlp>(options, 4, Output::dataclass);
    case ModelKind::bypassed:
      return std::make_shared<Bypassed>(options);
    case ModelKind::frozen:
      return std::make_shared<Frozen>(options);
    case ModelKind::two_losses:
      return std::make_shared<TwoLosses>(options);
    case ModelKind::tied:
      return std::make_shared<Tied>(options);
    case ModelKind::unused:
      return std::make_shared<Unused>(options);
    default:
      return nullptr;
  }
}

}  // namespace zeroproof::train
