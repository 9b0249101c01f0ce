#pragma once

#include <memory>
#include <vector>

#include "zeroproof/model/nn/module.h"

namespace zeroproof::nn {

// One module after the other; children are named "0", "1", ...
class Sequential final : public Module {
 public:
  explicit Sequential(const std::vector<std::shared_ptr<Module>>& modules);

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override;

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};

}  // namespace zeroproof::nn
