#pragma once

#include <functional>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// Once a graph task, inside the tensor hook of the last of `tensors` that the task reaches, with
// all their gradients, undefined where there is none. How many it reaches is asked at the first
// one; a single root counts as not reached (rule H6). The Autograd must outlive the hooks.
HookHandle register_multi_grad_hook(Autograd& autograd, const TensorList& tensors,
                                    std::function<void(const TensorList& grads)> hook);

// Once a graph task, inside the tensor hook of the first of them.
HookHandle register_any_grad_hook(Autograd& autograd, const TensorList& tensors,
                                  std::function<void(const Tensor& grad)> hook);

}  // namespace zeroproof
