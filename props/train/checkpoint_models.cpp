// Models whose blocks run in checkpoints.
#include "props/train/models.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

// Two layers.
class CheckpointBlock final : public nn::Module {
 public:
  CheckpointBlock(nn::InitStream& init, DataMode data)
      : a_(register_module("a", std::make_shared<Layer>(init, data, LayerSizes{5, 5}))),
        b_(register_module("b", std::make_shared<Layer>(init, data, LayerSizes{5, 5}))) {}

  Layer& a() const { return *a_; }
  Layer& b() const { return *b_; }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return (*b_)(ag, (*a_)(ag, inputs));
  }

 private:
  std::shared_ptr<Layer> a_;
  std::shared_ptr<Layer> b_;
};

class Checkpointed final : public nn::Module {
 public:
  Checkpointed(const ModelOptions& options, CheckpointKind kind, bool is_frozen)
      : data_(options.data), kind_(kind), watch_(options.watch) {
    nn::InitStream init(options.seed);
    const auto layer = [&](const std::string& name, const LayerSizes& sizes) {
      return register_module(name, std::make_shared<Layer>(init, data_, sizes));
    };
    inp_ = layer("inp", {4, 5});
    b1_ = register_module("b1", std::make_shared<CheckpointBlock>(init, data_));
    b2_ = register_module("b2", std::make_shared<CheckpointBlock>(init, data_));
    head_ = layer("head", {5, 2, true, false});
    if (is_frozen) freeze({&b1_->a(), &b2_->b()});
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    TensorList h = (*inp_)(ag, inputs);
    h = checkpointed(ag, "b1", *b1_, h);
    h = checkpointed(ag, "b2", *b2_, h);
    return {mean_loss(ag, data_, (*head_)(ag, h))};
  }

 private:
  static void freeze(std::initializer_list<Layer*> layers) {
    for (Layer* layer : layers)
      for (const nn::NamedParameter& parameter : layer->named_parameters())
        parameter.tensor.set_requires_grad(false);
  }

  TensorList checkpointed(Autograd& ag, const std::string& label, const CheckpointBlock& block,
                          const TensorList& inputs) const {
    const auto body = [&ag, label, &block, watch = watch_](const TensorList& given) {
      const auto run = [&] { return block(ag, given); };
      return watch ? watch->run_checkpoint(label, run) : run();
    };
    return checkpoint(ag, kind_, body, inputs);
  }

  DataMode data_;
  CheckpointKind kind_;
  ProgramWatch* watch_;
  std::shared_ptr<Layer> inp_;
  std::shared_ptr<CheckpointBlock> b1_;
  std::shared_ptr<CheckpointBlock> b2_;
  std::shared_ptr<Layer> head_;
};

}  // namespace

std::shared_ptr<nn::Module> make_checkpoint_model(ModelKind kind, const ModelOptions& options) {
  switch (kind) {
    case ModelKind::reentrant:
      return std::make_shared<Checkpointed>(options, CheckpointKind::reentrant, false);
    case ModelKind::non_reentrant:
      return std::make_shared<Checkpointed>(options, CheckpointKind::non_reentrant, false);
    case ModelKind::reentrant_frozen:
      return std::make_shared<Checkpointed>(options, CheckpointKind::reentrant, true);
    case ModelKind::non_reentrant_frozen:
      return std::make_shared<Checkpointed>(options, CheckpointKind::non_reentrant, true);
    default:
      return nullptr;
  }
}

}  // namespace zeroproof::train
