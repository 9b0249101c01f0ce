#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "zeroproof/model/usage_error.h"

namespace zeroproof {

// The misuses that the engine refuses (docs/spec/zero.md 2.20 and 3.14 number them E1 to F10).
enum class EngineErrorId : std::uint8_t {
  manual_backward_unsupported,
  backward_without_loss_scaling,
  backward_of_invalid_loss,
  scale_of_invalid_loss,
  scale_with_apex,
  no_sync_not_allowed,
  step_inside_no_sync,
  coalesce_not_allowed,
  boundary_set_in_unmanaged_accumulation,
  unsupported_combination,
  odd_allgather_bucket_size,
  eigenvalue_or_apex_in_backward,
  reduce_scatter_dtype_unsupported,
  reduce_scatter_with_prescaling,
  offloaded_parameter_without_gradient,
  offload_of_unsupported_optimizer,
  gradient_added_after_reduction,
  gradient_reduced_twice,
  gradient_of_wrong_size,
  parameter_twice_in_bucket,
  parameter_gathered_after_step,
  overflow_at_minimum_scale,
  incomplete_backward,
  sum_reduction_unsupported,
  max_grad_norm_in_optimizer,
  hooks_counted_outside_backward,
  parameter_freed_while_used,
  fetch_order_changed,
  release_outside_backward,
  parameter_not_released,
  fetch_order_differs_between_ranks,
  gather_contexts_overlap,
  modified_without_modifier_rank,
  gathered_parameter_left_device,
  fetch_bookkeeping_out_of_order,
  group_smaller_than_launch,
};

std::string_view engine_error_name(EngineErrorId id);  // "manual_backward_unsupported"; static

// Thrown where upstream raises. `what()` begins with the name, then says what was done, with which
// value, and what to do instead.
class EngineError : public UsageError {
 public:
  EngineError(EngineErrorId id, const std::string& text);
  EngineErrorId id() const { return id_; }

 private:
  EngineErrorId id_;
};

}  // namespace zeroproof
