#include "props/train/generated_layers.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "model/functions/indexing.h"
#include "props/train/models.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

// Ones that depend on the activations.
Tensor linked_ones(Autograd& ag, const Tensor& h, const Shape& sizes) {
  const auto elements = static_cast<std::size_t>(sizes.back());  // the others are one
  return masked_fill(ag, mean(ag, h), {std::vector<bool>(elements, true), sizes}, 1.0);
}

// One input, or the mean of two that are equal.
Tensor activations_of(Autograd& ag, const TensorList& inputs) {
  return inputs.size() < 3 ? inputs.at(0) : mul(ag, add(ag, inputs.at(0), inputs.at(2)), 0.5);
}

// What the user's own code throws in the middle of a forward.
class Throwing {
 public:
  // `throws` must outlive it. `layer` counts from 0.
  Throwing(const int& throws, std::size_t layer)
      : throws_(throws), number_(static_cast<int>(layer) + 1) {}

  void operator()() const {
    if (throws_ == number_) throw Injected("injected in a forward");
  }

 private:
  const int& throws_;
  int number_;
};

// What a layer multiplies with: an input, or what its closure has instead, which it takes.
class Factor {
 public:
  // `closed` must outlive it.
  Factor(Tensor& closed, bool is_closed) : closed_(closed), is_closed_(is_closed) {}

  Tensor of(const TensorList& inputs) const {
    return is_closed_ ? std::exchange(closed_, Tensor()) : inputs.at(1);
  }

 private:
  Tensor& closed_;
  bool is_closed_;
};

// As Layer computes it, with a weight of its own, outside what autocast covers.
class RawLayer final : public nn::Module {
 public:
  // `returns`: its weight as well. `seen`, which must outlive it: where it is watched.
  RawLayer(nn::InitStream& init, const LayerSpec& spec, const Throwing& throwing,
           const Factor& factor, bool returns, SeenGradients* seen)
      : seen_(seen),
        weight_(register_parameter("weight", weight_of(init, spec))),
        throwing_(throwing),
        factor_(factor),
        returns_(returns) {
    if (spec.has_twin != 0) twin_ = &register_parameter(CaseSpec::kTwin, weight_of(init, spec));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor c = factor_.of(inputs);
    const Tensor h = activations_of(ag, inputs);
    Tensor total = total_of(ag, weight_, h, seen_);
    if (twin_) total = add(ag, total, mul(ag, sum(ag, *twin_), 2.0));
    throwing_();
    TensorList outputs = {add(ag, h, mul(ag, c, total)), inputs.at(1)};
    if (returns_) outputs.push_back(weight_);
    return outputs;
  }

 private:
  static Tensor weight_of(nn::InitStream& init, const LayerSpec& spec) {
    const Shape shapes[] = {{spec.outputs, spec.inputs},
                            {spec.outputs * spec.inputs},
                            {spec.outputs, 1, spec.inputs},
                            {}};
    const auto& sizes = shapes[static_cast<std::size_t>(spec.shape)];
    return init.kaiming(sizes, spec.inputs, DType::float32);
  }

  SeenGradients* seen_;
  Tensor& weight_;
  Tensor* twin_ = nullptr;  // its gradient is twice the weight's
  Throwing throwing_;
  Factor factor_;
  bool returns_;
};

// Two layers, of which each forward runs one.
class Experts final : public nn::Module {
 public:
  // `which` must outlive it.
  Experts(nn::InitStream& init, DataMode data, const int& which) : which_(which) {
    for (std::size_t i = 0; i < experts_.size(); ++i)
      experts_[i] =
          register_module("e" + std::to_string(i),
                          std::make_shared<Layer>(init, data, LayerSizes{2, 2, false, false}));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return (*experts_.at(static_cast<std::size_t>(which_)))(ag, inputs);
  }

 private:
  const int& which_;
  std::array<std::shared_ptr<Layer>, 2> experts_;
};

class Reader final : public nn::Module {
 public:
  explicit Reader(const Reading& reading) : reading_(reading) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return reading_(ag, inputs);
  }

 private:
  Reading reading_;
};

// Of which the weight is another module's as well.
class TiedLayers final : public nn::Module {
 public:
  explicit TiedLayers(const Reading& reading)
      : reading_(reading), weight_(register_parameter("weight", reading.read())) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return reading_.used(ag, weight_, inputs);
  }

 private:
  Reading reading_;
  Tensor& weight_;
};

// Without parameters.
class Aside final : public nn::Module {
 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mul(ag, inputs.at(0), 1.0), inputs.at(1)};
  }
};

class Owner final : public nn::Module {
 public:
  explicit Owner(const Tensor& weight) { register_parameter("weight", weight); }

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }
};

// As train::Layer with exact data; a linked one's input is the activations, filled with ones, so
// that the module has an input that needs a gradient. Its gradient is zero whatever comes, where
// zero times what has left the range of fp16 is not a number.
class SpecLayer final : public nn::Module {
 public:
  SpecLayer(nn::InitStream& init, const LayerSpec& spec, const Throwing& throwing,
            const Factor& factor, SeenGradients& seen)
      : spec_(spec), throwing_(throwing), factor_(factor), seen_(seen) {
    const Tensor weight = init.kaiming({spec.outputs, spec.inputs}, spec.inputs, DType::float32);
    const Tensor bias =
        spec.has_bias != 0 ? init.kaiming({spec.outputs}, spec.inputs, DType::float32) : Tensor();
    linear_ = register_module("linear", std::make_shared<nn::Linear>(weight, bias));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = activations_of(ag, inputs);
    const Tensor c = factor_.of(inputs);
    Shape sizes(static_cast<std::size_t>(spec_.dimensions != 0 ? spec_.dimensions : 2), 1);
    sizes.back() = spec_.inputs;
    Tensor x = spec_.is_linked != 0 ? linked_ones(ag, inputs.size() < 3 ? h : inputs.at(2), sizes)
                                    : Tensor::full(sizes, 1.0, c.dtype());
    if (spec_.is_watched != 0) x = watched(ag, x, seen_);
    const Tensor total = sum(ag, (*linear_)(ag, x));
    throwing_();
    return {add(ag, h, mul(ag, c, total)), inputs.at(1)};
  }

 private:
  LayerSpec spec_;
  Throwing throwing_;
  Factor factor_;
  SeenGradients& seen_;
  std::shared_ptr<nn::Linear> linear_;
};

}  // namespace

Tensor total_of(Autograd& ag, const Tensor& weight, const Tensor& h, SeenGradients* seen) {
  if (!seen) return sum(ag, weight);
  const Tensor ones = linked_ones(ag, h, {1, weight.sizes().at(1)});
  return sum(ag, linear(ag, watched(ag, ones, *seen), weight, Tensor()));
}

std::shared_ptr<nn::Module> make_layer(nn::InitStream& init, const LayerUse& use) {
  const LayerSpec& layer = use.spec;
  const Throwing throwing(use.throws, use.index);
  const Factor factor(use.closed_factor, layer.is_closed != 0);
  if (layer.is_raw == 0)
    return std::make_shared<SpecLayer>(init, layer, throwing, factor, use.seen);
  return std::make_shared<RawLayer>(init, layer, throwing, factor, use.returns,
                                    layer.is_watched != 0 ? &use.seen : nullptr);
}

std::shared_ptr<nn::Module> make_experts(nn::InitStream& init, DataMode data, const int& which) {
  return std::make_shared<Experts>(init, data, which);
}

std::shared_ptr<nn::Module> make_reader(const Reading& reading) {
  return std::make_shared<Reader>(reading);
}

std::shared_ptr<nn::Module> make_tied(const Reading& reading) {
  return std::make_shared<TiedLayers>(reading);
}

std::shared_ptr<nn::Module> make_aside() {
  return std::make_shared<Aside>();
}

std::shared_ptr<nn::Module> make_owner(const nn::Module& layer) {
  for (const nn::NamedParameter& named : layer.named_parameters())
    if (named.name.ends_with("weight")) return std::make_shared<Owner>(named.tensor);
  return make_aside();
}

Reading::Reading(nn::Module& layer, int calls, bool is_registered, SeenGradients* seen)
    : layer_(layer), factor_(std::ldexp(1.0, calls)), is_registered_(is_registered), seen_(seen) {}

TensorList Reading::operator()(Autograd& ag, const TensorList& inputs) const {
  return used(ag, read(), inputs);
}

Tensor Reading::read() const {
  for (const nn::NamedModule& owner : layer_.named_modules()) {
    const std::vector<Tensor*> own = owner.module->own_parameters();
    if (own.empty()) continue;
    return is_registered_ ? *own.front() : owner.module->read(*own.front());
  }
  return {};
}

TensorList Reading::used(Autograd& ag, const Tensor& weight, const TensorList& inputs) const {
  if (!weight.is_defined()) return inputs;
  const Tensor factor = mul(ag, inputs.at(1), factor_);
  const Tensor total = total_of(ag, weight, inputs.at(0), seen_);
  return {add(ag, inputs.at(0), mul(ag, factor, total)), inputs.at(1)};
}

}  // namespace zeroproof::train
