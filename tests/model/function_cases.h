#pragma once

#include <functional>
#include <string>
#include <vector>

#include "zeroproof/model/autograd.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// A function of tensors that need gradients, by the name that data files use.
struct FunctionCase {
  std::string name;  // begins with that of the function
  std::vector<Shape> shapes;
  std::function<Tensor(Autograd&, const TensorList&)> body;
};

// Every differentiable function at least once: a test holds the table against the headers.
const std::vector<FunctionCase>& function_cases();

// Distinct values away from kinks and ties, with gradients wanted.
TensorList inputs_of(const FunctionCase& function);

// Weighted, so that no two elements of the result count the same.
Tensor weighted_sum(Autograd& ag, const Tensor& result);

// The sum of squares of the function and of its first gradients, through the nodes that the
// backward made.
Tensor gradient_penalty(Autograd& ag, const FunctionCase& function, const TensorList& inputs);

// Checks `grads` of a scalar loss, element by element, to 1e-7 of the largest slope.
void expect_central_differences(Autograd& ag, const TensorList& inputs,
                                const std::function<Tensor()>& loss, const TensorList& grads,
                                const std::string& name);

}  // namespace zeroproof
