#pragma once

#include "engine/zero/zero_context.h"

namespace zeroproof {

// The loss times a number, differentiable; in float32 where the loss is narrower, because half
// precision could not hold the product.
Tensor scaled(Autograd& autograd, const Tensor& loss, double factor);

// The loss scale and the accumulation steps: along every path from a loss to a leaf each of the two
// factors is due once (P19). The context's tracker says which backwards run.
class LossFactor {
 public:
  // `context` must outlive it.
  explicit LossFactor(const ZeroContext& context) : context_(context) {}

  // The argument of the last engine.backward. It stays, as upstream's attribute does (H8).
  void set_scales_wrt_gas(bool scales) { scales_wrt_gas_ = scales; }

  // What engine.backward multiplies its loss by.
  double of_managed_loss() const;

  // What a gradient still lacks where it arrives at a leaf.
  double at_leaf() const;
  // Whether at_leaf() is ever other than one, as far as it is known now.
  bool is_needed_at_leaves() const;
  // Whether a gradient comes from a tensor.backward() of the user, after the forward.
  bool is_backward_manual() const;
  // The factor that a gradient still lacks inside an engine.backward, of any engine.
  double in_managed_backward() const;

  // Whether gradients are divided by the accumulation steps where they arrive at an output (H8).
  bool divides_at_outputs() const;

 private:
  double gas() const { return static_cast<double>(context_.config.gradient_accumulation_steps); }
  bool is_backward_managed() const { return context_.autograd.global().managed_backwards > 0; }

  const ZeroContext& context_;
  bool scales_wrt_gas_ = true;
};

}  // namespace zeroproof
