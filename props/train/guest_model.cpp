#include "props/train/guest_model.h"

#include <map>
#include <string>
#include <vector>

namespace zeroproof::train {
namespace {

std::map<std::string, std::vector<double>> plain_gradients(Autograd& autograd, nn::Module& module,
                                                           DType dtype) {
  const TensorList inputs = {Tensor::full({2}, 0.0, dtype), Tensor::full({}, 1.0, dtype)};
  const Tensor loss = module(autograd, inputs).at(0);
  std::map<std::string, std::vector<double>> gradients;
  if (!loss.grad_fn()) return gradients;
  autograd.backward(loss);
  for (const nn::NamedParameter& named : module.named_parameters())
    if (const Tensor grad = named.tensor.grad(); grad.is_defined())
      gradients[named.name] = grad.values();
  return gradients;
}

}  // namespace

bool trains_alike(Autograd& autograd, nn::Module& left, nn::Module& untouched, DType dtype) {
  return plain_gradients(autograd, left, dtype) ==
         plain_gradients(autograd, untouched, DType::float32);
}

}  // namespace zeroproof::train
