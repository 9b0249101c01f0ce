#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/init.h"
#include "zeroproof/model/nn/linear.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::peer {

using ModulePtr = std::shared_ptr<nn::Module>;

// A module whose forward is a lambda: what the rows' small models are made of. Calls have to be
// made while it lives.
class Net final : public nn::Module {
 public:
  using Body = std::function<TensorList(Autograd& ag, const Net& net, const TensorList& inputs)>;
  struct Parts {
    std::vector<std::pair<std::string, ModulePtr>> children = {};
    std::vector<std::pair<std::string, Tensor>> parameters = {};
  };

  Net(const Parts& parts, Body body);

  // A child, called.
  Tensor call(Autograd& ag, const std::string& child, const Tensor& input) const;
  TensorList call_list(Autograd& ag, const std::string& child, const TensorList& inputs) const;
  nn::Module& child(const std::string& name) const { return *children_.at(name); }
  const Tensor& parameter(const std::string& name) const { return *parameters_.at(name); }
  OutputContainer output_container() const override { return container; }

  OutputContainer container = OutputContainer::tensors;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return body_(ag, *this, inputs);
  }

 private:
  std::map<std::string, ModulePtr> children_;
  std::map<std::string, const Tensor*> parameters_;
  Body body_;
};

using NetMaker = std::function<ModulePtr()>;

// Numbers that only depend on the seed, in [-1, 1), rounded to the dtype.
Tensor sample(const Shape& sizes, std::uint64_t seed, DType dtype = DType::float32);

// Layers in float32 with values that only depend on the seed.
std::shared_ptr<nn::Linear> linear_layer(std::int64_t inputs, std::int64_t outputs,
                                         std::uint64_t seed, bool has_bias = true);
ModulePtr norm_layer(std::int64_t width, std::uint64_t seed);
void freeze(nn::Module& module);

// `layers` square linear layers with tanh between them; {x} -> {what the last one gave}, or with
// `has_loss` {x, target} -> {the mean square of the difference}.
struct StackSizes {
  std::int64_t width = 4;
  int layers = 2;
  bool has_loss = true;
};
NetMaker make_stack(const StackSizes& sizes, std::uint64_t seed = 42);

}  // namespace zeroproof::peer
