#pragma once

#include <cstdint>
#include <vector>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

class Autograd;

// Losses as torch.nn.functional has them. Differentiable as all functions of
// zeroproof/model/functions.h; AutogradError for shapes that do not fit.

enum class Reduction : std::uint8_t { none, mean, sum };

// Of the same sizes; both may need a gradient.
Tensor mse_loss(Autograd& ag, const Tensor& x, const Tensor& target,
                Reduction reduction = Reduction::mean);
Tensor l1_loss(Autograd& ag, const Tensor& x, const Tensor& target,
               Reduction reduction = Reduction::mean);

// The class of every row; rows of class ignore_index do not count, not in the mean either.
struct Classes {
  std::vector<std::int64_t> of_row;
  std::int64_t ignore_index = -100;
};

// Of logarithms of probabilities [rows, classes]. The mean over no rows is NaN.
Tensor nll_loss(Autograd& ag, const Tensor& x, const Classes& target,
                Reduction reduction = Reduction::mean);
// Of logits: log_softmax, then nll_loss.
Tensor cross_entropy(Autograd& ag, const Tensor& logits, const Classes& target,
                     Reduction reduction = Reduction::mean);

}  // namespace zeroproof
