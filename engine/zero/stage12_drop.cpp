// Stages 1 and 2 drop the gradients of a window; upstream keeps some of them (H15, N5, N8).
#include "engine/zero/stage12.h"

namespace zeroproof {

void Stage12Optimizer::zero_grad() {
  const Events::Call call(context_.events, "z12.zero_grad");
  if (!context_.upstream.abort_leaks_state) abandon_gradients();
  if (!keeps_partition()) return FlatOptimizer::zero_grad();
  drop_local_sums();
  clear_grads();
}

void Stage12Optimizer::drop_local_sums() {
  for (const ZeroParameter& parameter : context_.parameters) accumulated(parameter) = {};
}

// N5: reductions add straight into the partition that the step reads, and the step alone drops it.
bool Stage12Optimizer::keeps_partition() const {
  return context_.upstream.zero_grad_keeps_partition && context_.config.has_float32_partition();
}

// N8: unmanaged, the step finds what the last window left of a parameter that this one has not
// used.
bool Stage12Optimizer::repeats_unused() const {
  return context_.upstream.unmanaged_offload_repeats && context_.config.is_offloaded() &&
         !context_.config.managed_gradient_accumulation;
}

// Upstream clears neither the CPU accumulators nor what the optimizer reads (H15, N8).
void Stage12Optimizer::drop_gradients() {
  window_holds_ = 0;
  is_used_.assign(is_used_.size(), false);
  const bool is_kept = context_.upstream.offload_never_cleared || repeats_unused();
  if (!context_.config.is_offloaded() || !is_kept) return FlatOptimizer::drop_gradients();
  for (FlatGroup& group : groups_) group.drop_pending();
  if (!context_.upstream.offload_never_cleared) drop_local_sums();
  clear_grads();
}

}  // namespace zeroproof
