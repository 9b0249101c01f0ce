#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "zeroproof/engine/full_tensor.h"
#include "zeroproof/model/dtype.h"

namespace zeroproof::peer {

// Why a row is not as it should be.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws Failed unless `is_true`.
void require(bool is_true, const std::string& what);
void require_near(double a, double b, double tolerance, const std::string& what);

// Runs `body`; what fails in it gets `label` in front of its text.
void within(const std::string& label, const std::function<void()>& body);
// The same for each of several values; fmt formats them.
template <class Values, class Body>
void each(const std::string& label, const Values& values, const Body& body) {
  for (const auto& value : values)
    within(label + " " + std::to_string(static_cast<long>(value)), [&] { body(value); });
}

// How far two results in one dtype may lie apart: PyTorch's defaults for it. Relative to the
// largest element of a tensor, because partial sums of any size may cancel.
struct Tolerance {
  double relative = 0.0;
  double absolute = 0.0;
};
Tolerance tolerance_of(DType dtype);

using FullTensors = std::vector<FullTensor>;

// By name; a tensor that one side lacks, or has without values, is zero. Not a number is unequal.
void require_equal(const FullTensors& ours, const FullTensors& reference,
                   const Tolerance& tolerance, const std::string& what);
// The same for parameters, without those that have no values on a side (frozen ones).
void require_equal_parameters(const FullTensors& ours, const FullTensors& reference,
                              const Tolerance& tolerance, const std::string& what);
// The largest difference of two elements.
double max_difference(const FullTensors& a, const FullTensors& b);
// Whether any element is not zero.
bool has_values(const FullTensors& tensors);
const FullTensor& find(const FullTensors& tensors, const std::string& name);

}  // namespace zeroproof::peer
