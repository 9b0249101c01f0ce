#pragma once

#include <cstdint>
#include <vector>

#include "zeroproof/model/dtype.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {
class Autograd;
}

namespace zeroproof::baseline {

// Every integer up to two to this power is a value of the type.
int significand_bits(DType dtype);

// Gradients that do not depend on the weights and whose sums are exact in every order: what each
// contribution (a micro-batch of a rank, a use of a parameter) adds to every element of a gradient.
// Where the significand has a bit for each, contribution c adds 2^c, so that a sum says which were
// lost or came twice; else small integers. AutogradError when not even these fit.
class ExactData {
 public:
  ExactData(DType dtype, std::int64_t contributions);

  double value(std::int64_t contribution) const;
  double sum() const;  // of all contributions, once each
  bool is_decodable() const { return is_decodable_; }

  // How often each contribution is in a sum of at most one of each; only if is_decodable().
  std::vector<bool> decode(double sum) const;

  // A loss whose gradient for each element of each parameter is value(contribution); parameters
  // of the dtype given, of any sizes and values.
  Tensor loss(Autograd& ag, const TensorList& parameters, std::int64_t contribution) const;

 private:
  DType dtype_;
  std::int64_t contributions_;
  bool is_decodable_;
};

}  // namespace zeroproof::baseline
