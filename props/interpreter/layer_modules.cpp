#include "props/interpreter/layer_modules.h"

#include <utility>
#include <vector>

#include "model/functions/indexing.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof::program {
namespace {

constexpr const char* kTwin = "weight_twin/step";  // begins with another's, ends as a state's name

Shape input_sizes(const Linear& spec) {
  if (spec.dimensions == 1) return {spec.inputs};
  if (spec.dimensions == 2) return {spec.inputs, spec.inputs};
  return {1, spec.inputs, spec.inputs};
}

// The identity, or ones of one dimension: row i of the output is the weight's column i.
std::vector<double> input_values(const Linear& spec) {
  const auto width = static_cast<std::size_t>(spec.inputs);
  if (spec.dimensions == 1) return std::vector<double>(width, 1.0);
  std::vector<double> values(width * width, 0.0);
  for (std::size_t i = 0; i < width; ++i) values[i * width + i] = 1.0;
  return values;
}

// Ones whose graph comes from the activations, though they do not depend on them. Their gradient is
// zero whatever comes, where a product with zero would keep what is no number.
Tensor linked_ones(Autograd& ag, const Tensor& h, const Shape& sizes) {
  const auto elements = static_cast<std::size_t>(numel(sizes));
  return masked_fill(ag, expand(ag, mean(ag, h), sizes), {std::vector<bool>(elements, true), sizes},
                     1.0);
}

// What comes in beside the activations, or what its closure has instead, which it takes.
TensorList factors_of(const TensorList& inputs, int activations, TensorList* closed) {
  if (closed) return std::exchange(*closed, TensorList());
  return {inputs.begin() + activations, inputs.end()};
}

// One input; or the mean of two that are equal.
Tensor activations_of(Autograd& ag, const TensorList& inputs, int activations) {
  if (activations < 2) return inputs.at(0);
  return mul(ag, add(ag, inputs.at(0), inputs.at(1)), 0.5);
}

class LinearLayer final : public nn::Module {
 public:
  LinearLayer(nn::InitStream& init, const Linear& spec, const LayerOptions& options)
      : spec_(spec), options_(options) {
    const Tensor weight = init.kaiming({spec.outputs, spec.inputs}, spec.inputs, DType::float32);
    const Tensor bias =
        spec.has_bias ? init.kaiming({spec.outputs}, spec.inputs, DType::float32) : Tensor();
    linear_ = register_module("linear", std::make_shared<nn::Linear>(weight, bias));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = activations_of(ag, inputs, spec_.activations);
    const Tensor factor =
        factors_of(inputs, spec_.activations, spec_.closes_over_factor ? options_.closed : nullptr)
            .at(0);
    return {add(ag, h, sum(ag, mul(ag, factor, (*linear_)(ag, input(ag, h, factor.dtype())))))};
  }

 private:
  Tensor input(Autograd& ag, const Tensor& h, DType dtype) const {
    const Shape sizes = input_sizes(spec_);
    Tensor x = Tensor::of(input_values(spec_), sizes, dtype).on(h.device());
    if (options_.is_real) return mul(ag, x, tanh(ag, mean(ag, h)));
    if (spec_.input_needs_grad) x = mul(ag, x, linked_ones(ag, h, sizes));
    return spec_.watches_input ? watched(ag, x, *options_.seen) : x;
  }

  Linear spec_;
  LayerOptions options_;
  std::shared_ptr<nn::Linear> linear_;
};

class CustomLayer final : public nn::Module {
 public:
  CustomLayer(nn::InitStream& init, const Custom& spec, const LayerOptions& options)
      : spec_(spec),
        options_(options),
        weight_(register_parameter("weight", init.kaiming(spec.shape, 2, DType::float32))) {
    if (spec.weights > 1)
      twin_ = &register_parameter(kTwin, init.kaiming(spec.shape, 2, DType::float32));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const TensorList factors =
        factors_of(inputs, spec_.activations, spec_.closes_over_factor ? options_.closed : nullptr);
    Tensor h = activations_of(ag, inputs, spec_.activations);
    h = add_use(ag, h, factors.at(0), weight_, spec_.watches_input ? options_.seen : nullptr);
    if (twin_) h = add_use(ag, h, factors.at(1), *twin_);
    return spec_.returns_weight ? TensorList{h, weight_} : TensorList{h};
  }

 private:
  Custom spec_;
  LayerOptions options_;
  Tensor& weight_;
  Tensor* twin_ = nullptr;
};

// A class of its own name: configurations name it (leaf_module.classes).
namespace leaf {

class Experts final : public nn::Module {
 public:
  Experts(nn::InitStream& init, const program::Experts& spec, const int& which) : which_(which) {
    for (int i = 0; i < spec.experts; ++i)
      experts_.push_back(register_module("e" + std::to_string(i),
                                         make_linear(init, Linear{.inputs = 2, .outputs = 2}, {})));
  }

 protected:
  // {activations, one factor an expert}
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const auto which = static_cast<std::size_t>(which_) % experts_.size();
    return (*experts_[which])(ag, {inputs.at(0), inputs.at(1 + which)});
  }

 private:
  const int& which_;
  std::vector<std::shared_ptr<nn::Module>> experts_;
};

}  // namespace leaf

class TiedLayer final : public nn::Module {
 public:
  explicit TiedLayer(const Tensor& weight) : weight_(register_parameter("weight", weight)) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {add_use(ag, inputs.at(0), inputs.at(1), weight_)};
  }

 private:
  Tensor& weight_;
};

class Reader final : public nn::Module {
 public:
  Reader(nn::Module& owner, bool is_registered, SeenGradients* seen)
      : owner_(owner), is_registered_(is_registered), seen_(seen) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor weight = read_weight(owner_, is_registered_);
    return {add_use(ag, inputs.at(0), inputs.at(1), weight, seen_)};
  }

 private:
  nn::Module& owner_;
  bool is_registered_;
  SeenGradients* seen_;
};

}  // namespace

std::shared_ptr<nn::Module> make_linear(nn::InitStream& init, const Linear& spec,
                                        const LayerOptions& options) {
  return std::make_shared<LinearLayer>(init, spec, options);
}

std::shared_ptr<nn::Module> make_custom(nn::InitStream& init, const Custom& spec,
                                        const LayerOptions& options) {
  return std::make_shared<CustomLayer>(init, spec, options);
}

std::shared_ptr<nn::Module> make_experts(nn::InitStream& init, const Experts& spec,
                                         const int& which) {
  return std::make_shared<leaf::Experts>(init, spec, which);
}

std::shared_ptr<nn::Module> make_tied(const Tensor& weight) {
  return std::make_shared<TiedLayer>(weight);
}

std::shared_ptr<nn::Module> make_reader(nn::Module& owner, bool is_registered,
                                        SeenGradients* seen) {
  return std::make_shared<Reader>(owner, is_registered, seen);
}

Tensor read_weight(nn::Module& owner, bool is_registered) {
  for (const nn::NamedModule& named : owner.named_modules()) {
    const std::vector<Tensor*> own = named.module->own_parameters();
    if (own.empty()) continue;
    return is_registered ? *own.front() : named.module->read(*own.front());
  }
  return {};
}

Tensor add_use(Autograd& ag, const Tensor& h, const Tensor& factor, const Tensor& weight,
               SeenGradients* seen) {
  if (!seen) return add(ag, h, sum(ag, mul(ag, factor, weight)));
  const Tensor ones = watched(ag, linked_ones(ag, h, factor.sizes()), *seen);
  return add(ag, h, sum(ag, mul(ag, factor, mul(ag, ones, weight))));
}

}  // namespace zeroproof::program
