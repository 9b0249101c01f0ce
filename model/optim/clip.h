#pragma once

#include "zeroproof/internal/model/ops.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::optim {

// The 2-norm of all gradients together, each tensor's norm rounded to its dtype, as
// torch.nn.utils.get_total_norm. Parameters without a gradient do not count; 0 without any.
Tensor grad_norm(const Ops& ops, const TensorList& parameters);

// torch.nn.utils.clip_grad_norm_: scales gradients in place so that their norm is at most
// `max_norm`; returns the norm before.
Tensor clip_grad_norm(const Ops& ops, const TensorList& parameters, double max_norm);

}  // namespace zeroproof::optim
