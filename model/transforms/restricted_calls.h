#pragma once

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// Methods of a tensor that are refused while a function transform runs, whatever the tensor
// (rule T8): AutogradError. Outside they do what the tensor's own method does.
void requires_grad_(Autograd& ag, const Tensor& x, bool requires_grad = true);
void retain_grad(Autograd& ag, const Tensor& x);

}  // namespace zeroproof
