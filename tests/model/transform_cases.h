#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "model/cpu_ops.h"
#include "model/transforms/transforms.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::testing {

// One operation on inputs of the given sizes. Every operation of model/functions has at least one;
// a new one gets its row, and with it all the tests of its rules.
struct TransformCase {
  std::string name;
  std::vector<Shape> sizes;
  std::function<TensorList(Autograd&, const TensorList&)> body;
};

const std::vector<TransformCase>& transform_cases();

inline void PrintTo(const TransformCase& op, std::ostream* out) {
  *out << op.name;
}

// Distinct, positive, away from the kinks; `salt` makes other ones.
TensorList inputs_of(const TransformCase& op, double salt = 0.0);

func::Function function_of(Autograd& ag, const TransformCase& op);

// A scalar of every output, no two elements alike, nonlinear in them.
func::Function loss_of(Autograd& ag, func::Function f);

// The derivative of all outputs of f in the direction of `tangents`, from values alone.
std::vector<double> central_differences(const func::Function& f, const TensorList& inputs,
                                        const TensorList& tangents);

// Row-major values of all tensors in a row.
std::vector<double> values_of(const TensorList& tensors);

// One tensor that is one in `element` of `inputs[input]`, zeros for the others.
TensorList unit_tangents(const TensorList& inputs, std::size_t input, std::size_t element);

// Empty when no two differ by more than `tolerance`, relative to the largest value.
std::string difference(const std::vector<double>& expected, const std::vector<double>& actual,
                       double tolerance);

}  // namespace zeroproof::testing
