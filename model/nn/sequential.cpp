#include "model/nn/sequential.h"

#include <string>

namespace zeroproof::nn {

Sequential::Sequential(const std::vector<std::shared_ptr<Module>>& modules) {
  for (const auto& module : modules)
    modules_.push_back(register_module(std::to_string(modules_.size()), module));
}

TensorList Sequential::forward(Autograd& ag, const TensorList& inputs) const {
  TensorList values = inputs;
  for (const auto& module : modules_) values = (*module)(ag, values);
  return values;
}

}  // namespace zeroproof::nn
