#pragma once

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// With numbers that no Python expression wrapped into a tensor: their nodes have one edge. What
// PyTorch's own C++ formulas make.
Tensor add_scalar(Autograd& ag, const Tensor& x, double number);  // AddBackward1
Tensor mul_scalar(Autograd& ag, const Tensor& x, double number);  // MulBackward1
Tensor div_scalar(Autograd& ag, const Tensor& x, double number);  // DivBackward1

}  // namespace zeroproof
