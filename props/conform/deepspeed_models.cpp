#include "props/conform/deepspeed_models.h"

#include "model/check.h"
#include "model/custom_function.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

using train::Injected;

constexpr std::int64_t kTiles = 2;

// A model and what it is made from.
class RecordedModule : public nn::Module {
 protected:
  explicit RecordedModule(const DeepspeedModelOptions& options) : options_(options) {}

  std::shared_ptr<nn::Linear> linear(const std::string& name, const std::string& prefix = {},
                                     bool has_bias = true) {
    const std::string full = prefix + name;
    return register_module(name, std::make_shared<nn::Linear>(
                                     options_.parameter(full + ".weight"),
                                     has_bias ? options_.parameter(full + ".bias") : Tensor()));
  }
  void tell(EventKind kind, std::string_view label) const {
    if (options_.watch) options_.watch->on_function(kind, label);
  }

  DeepspeedModelOptions options_;
};

Tensor mean_square(Autograd& ag, const Tensor& y) {
  return mean(ag, pow(ag, y, 2.0));
}

class Mlp final : public RecordedModule {
 public:
  Mlp(const DeepspeedModelOptions& options, bool gives_loss)
      : RecordedModule(options), l1_(linear("l1")), l2_(linear("l2")), gives_loss_(gives_loss) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor y = (*l2_)(ag, tanh(ag, (*l1_)(ag, inputs.at(0))));
    return {gives_loss_ ? mean_square(ag, y) : y};
  }

 private:
  std::shared_ptr<nn::Linear> l1_;
  std::shared_ptr<nn::Linear> l2_;
  bool gives_loss_;
};

class Block final : public RecordedModule {
 public:
  Block(const DeepspeedModelOptions& options, const std::string& prefix)
      : RecordedModule(options), a_(linear("a", prefix)), b_(linear("b", prefix)) {}

  nn::Linear& a() const { return *a_; }
  nn::Linear& b() const { return *b_; }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor& x = inputs.at(0);
    return {add(ag, x, (*b_)(ag, tanh(ag, (*a_)(ag, x))))};
  }

 private:
  std::shared_ptr<nn::Linear> a_;
  std::shared_ptr<nn::Linear> b_;
};

class Checkpointed final : public RecordedModule {
 public:
  Checkpointed(const DeepspeedModelOptions& options, CheckpointKind kind, bool is_frozen)
      : RecordedModule(options),
        kind_(kind),
        inp_(linear("inp")),
        b1_(register_module("b1", std::make_shared<Block>(options, "b1."))),
        b2_(register_module("b2", std::make_shared<Block>(options, "b2."))),
        head_(linear("head")) {
    if (!is_frozen) return;
    for (const nn::Linear* frozen : {&b1_->a(), &b2_->b()})
      for (const nn::NamedParameter& parameter : frozen->named_parameters())
        parameter.tensor.set_requires_grad(false);
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    TensorList h = (*inp_)(ag, inputs);
    h = checkpointed(ag, "b1", *b1_, h);
    h = checkpointed(ag, "b2", *b2_, h);
    return {mean_square(ag, (*head_)(ag, h.at(0)))};
  }

 private:
  TensorList checkpointed(Autograd& ag, const std::string& label, const Block& block,
                          const TensorList& inputs) const {
    const auto body = [&ag, label, &block, watch = options_.watch](const TensorList& given) {
      const auto run = [&] { return block(ag, given); };
      return watch ? watch->run_checkpoint(label, run) : run();
    };
    return checkpoint(ag, kind_, body, inputs);
  }

  CheckpointKind kind_;
  std::shared_ptr<nn::Linear> inp_;
  std::shared_ptr<Block> b1_;
  std::shared_ptr<Block> b2_;
  std::shared_ptr<nn::Linear> head_;
};

class TwoLosses final : public RecordedModule {
 public:
  explicit TwoLosses(const DeepspeedModelOptions& options)
      : RecordedModule(options), trunk_(linear("trunk")), ha_(linear("ha")), hb_(linear("hb")) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = tanh(ag, (*trunk_)(ag, inputs.at(0)));
    const Tensor a = mean_square(ag, (*ha_)(ag, h));
    return {a, mean(ag, abs(ag, (*hb_)(ag, h)))};
  }

 private:
  std::shared_ptr<nn::Linear> trunk_;
  std::shared_ptr<nn::Linear> ha_;
  std::shared_ptr<nn::Linear> hb_;
};

class Tied final : public RecordedModule {
 public:
  explicit Tied(const DeepspeedModelOptions& options)
      : RecordedModule(options), l_(linear("l")), head_(linear("head")) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor once = tanh(ag, (*l_)(ag, inputs.at(0)));
    return {mean_square(ag, (*head_)(ag, tanh(ag, (*l_)(ag, once))))};
  }

 private:
  std::shared_ptr<nn::Linear> l_;
  std::shared_ptr<nn::Linear> head_;
};

class Unused final : public RecordedModule {
 public:
  explicit Unused(const DeepspeedModelOptions& options)
      : RecordedModule(options), l1_(linear("l1")), extra_(linear("extra")), l2_(linear("l2")) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mean_square(ag, (*l2_)(ag, tanh(ag, (*l1_)(ag, inputs.at(0)))))};
  }

 private:
  std::shared_ptr<nn::Linear> l1_;
  std::shared_ptr<nn::Linear> extra_;
  std::shared_ptr<nn::Linear> l2_;
};

// A loss that differentiates one tile after the other inside its forward.
class Tiled final : public RecordedModule {
 public:
  explicit Tiled(const DeepspeedModelOptions& options)
      : RecordedModule(options), l1_(linear("l1")), head_(linear("head", {}, false)) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = tanh(ag, (*l1_)(ag, inputs.at(0)));
    head_->read(head_->weight);  // the Function gets it as an argument
    return apply_function(ag, loss_function(ag), {h});
  }

 private:
  CustomFunction loss_function(Autograd& ag) const {
    return {"TiledBackward",
            [this, &ag](FunctionContext& context, const TensorList& given) {
              tell(EventKind::fn_forward_begin, "tiled");
              const Tensor total = run_tiles(ag, context, given.at(0));
              tell(EventKind::fn_forward_end, "tiled");
              return TensorList{total};
            },
            [this, &ag](FunctionContext& context, const TensorList& grads) {
              tell(EventKind::fn_backward_begin, "tiled");
              const Tensor grad = context.saved_tensors().at(0);
              tell(EventKind::fn_backward_end, "tiled");
              return TensorList{mul(ag, grad, to(ag, grads.at(0), grad.dtype()))};
            }};
  }

  Tensor run_tiles(Autograd& ag, FunctionContext& context, const Tensor& h) const {
    TensorList grads;
    Tensor total = Tensor::full({}, 0.0, DType::float32).on(h.device());
    const TensorList parts = chunk(ag, h.detach(), kTiles, 0);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (options_.mark_ready) options_.mark_ready(head_->weight, i + 1 == parts.size());
      const Tensor part = parts[i].detach();
      part.set_requires_grad(true);
      const GradMode enabled(ag, true);
      const Tensor y = to(ag, (*head_)(ag, part), DType::float32);
      const Tensor loss = div(ag, mean_square(ag, y), double{kTiles});
      ag.backward(loss);
      grads.push_back(part.grad());
      total = add(ag, total, loss.detach());
    }
    context.save_for_backward({cat(ag, grads, 0)});
    return total.detach();
  }

  std::shared_ptr<nn::Linear> l1_;
  std::shared_ptr<nn::Linear> head_;
};

// "w" is in the graph, but its gradient is undefined.
class UndefinedGrad final : public RecordedModule {
 public:
  explicit UndefinedGrad(const DeepspeedModelOptions& options)
      : RecordedModule(options),
        w_(register_parameter("w", options.parameter("w"))),
        l1_(linear("l1")),
        l2_(linear("l2")) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = tanh(ag, (*l1_)(ag, inputs.at(0)));
    return {mean_square(ag, (*l2_)(ag, apply_function(ag, times(ag), {h, w_}).at(0)))};
  }

 private:
  static CustomFunction times(Autograd& ag) {
    return {"NoneGradBackward",
            [&ag](FunctionContext& context, const TensorList& given) {
              context.save_for_backward({given.at(1)});
              return TensorList{mul(ag, given.at(0), given.at(1))};
            },
            [&ag](FunctionContext& context, const TensorList& grads) {
              return TensorList{mul(ag, grads.at(0), context.saved_tensors().at(0)), Tensor()};
            }};
  }

  Tensor& w_;
  std::shared_ptr<nn::Linear> l1_;
  std::shared_ptr<nn::Linear> l2_;
};

class Raising final : public RecordedModule {
 public:
  explicit Raising(const DeepspeedModelOptions& options)
      : RecordedModule(options), l1_(linear("l1")), l2_(linear("l2")) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = tanh(ag, (*l1_)(ag, inputs.at(0)));
    return {mean_square(ag, (*l2_)(ag, apply_function(ag, raise_once(ag), {h}).at(0)))};
  }

 private:
  CustomFunction raise_once(Autograd& ag) const {
    return {"RaiseOnceBackward",
            [&ag](FunctionContext&, const TensorList& given) {
              return TensorList{mul(ag, given.at(0), 1.0)};
            },
            [armed = is_armed_](FunctionContext&, const TensorList& grads) {
              if (std::exchange(*armed, false)) throw Injected("injected");
              return TensorList{grads.at(0)};
            }};
  }

  std::shared_ptr<bool> is_armed_ = std::make_shared<bool>(true);
  std::shared_ptr<nn::Linear> l1_;
  std::shared_ptr<nn::Linear> l2_;
};

class Leaf final : public RecordedModule {
 public:
  explicit Leaf(const DeepspeedModelOptions& options)
      : RecordedModule(options),
        inp_(linear("inp")),
        blk_(register_module("blk", std::make_shared<Block>(options, "blk."))),
        head_(linear("head")) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const TensorList h = (*blk_)(ag, (*inp_)(ag, inputs));
    return {mean_square(ag, (*head_)(ag, h.at(0)))};
  }

 private:
  std::shared_ptr<nn::Linear> inp_;
  std::shared_ptr<Block> blk_;
  std::shared_ptr<nn::Linear> head_;
};

}  // namespace

std::shared_ptr<nn::Module> make_deepspeed_model(DeepspeedModel kind,
                                                 const DeepspeedModelOptions& options) {
  switch (kind) {
    case DeepspeedModel::mlp:
      return std::make_shared<Mlp>(options, true);
    case DeepspeedModel::mlp_without_loss:
      return std::make_shared<Mlp>(options, false);
    case DeepspeedModel::reentrant:
      return std::make_shared<Checkpointed>(options, CheckpointKind::reentrant, false);
    case DeepspeedModel::non_reentrant:
      return std::make_shared<Checkpointed>(options, CheckpointKind::non_reentrant, false);
    case DeepspeedModel::reentrant_frozen:
      return std::make_shared<Checkpointed>(options, CheckpointKind::reentrant, true);
    case DeepspeedModel::non_reentrant_frozen:
      return std::make_shared<Checkpointed>(options, CheckpointKind::non_reentrant, true);
    case DeepspeedModel::two_losses:
      return std::make_shared<TwoLosses>(options);
    case DeepspeedModel::unused:
      return std::make_shared<Unused>(options);
    case DeepspeedModel::tied:
      return std::make_shared<Tied>(options);
    case DeepspeedModel::tiled:
      return std::make_shared<Tiled>(options);
    case DeepspeedModel::undefined_grad:
      return std::make_shared<UndefinedGrad>(options);
    case DeepspeedModel::raising:
      return std::make_shared<Raising>(options);
    case DeepspeedModel::leaf:
      return std::make_shared<Leaf>(options);
  }
  ZP_CHECK(false, "a model of the enumeration");
  return nullptr;
}

}  // namespace zeroproof
