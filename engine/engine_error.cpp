#include "zeroproof/engine/engine_error.h"

#include <fmt/format.h>

#include <array>

namespace zeroproof {
namespace {

constexpr std::array<std::string_view, 36> kNames = {
    "manual_backward_unsupported",
    "backward_without_loss_scaling",
    "backward_of_invalid_loss",
    "scale_of_invalid_loss",
    "scale_with_apex",
    "no_sync_not_allowed",
    "step_inside_no_sync",
    "coalesce_not_allowed",
    "boundary_set_in_unmanaged_accumulation",
    "unsupported_combination",
    "odd_allgather_bucket_size",
    "eigenvalue_or_apex_in_backward",
    "reduce_scatter_dtype_unsupported",
    "reduce_scatter_with_prescaling",
    "offloaded_parameter_without_gradient",
    "offload_of_unsupported_optimizer",
    "gradient_added_after_reduction",
    "gradient_reduced_twice",
    "gradient_of_wrong_size",
    "parameter_twice_in_bucket",
    "parameter_gathered_after_step",
    "overflow_at_minimum_scale",
    "incomplete_backward",
    "sum_reduction_unsupported",
    "max_grad_norm_in_optimizer",
    "hooks_counted_outside_backward",
    "parameter_freed_while_used",
    "fetch_order_changed",
    "release_outside_backward",
    "parameter_not_released",
    "fetch_order_differs_between_ranks",
    "gather_contexts_overlap",
    "modified_without_modifier_rank",
    "gathered_parameter_left_device",
    "fetch_bookkeeping_out_of_order",
    "group_smaller_than_launch",
};
static_assert(static_cast<std::size_t>(EngineErrorId::group_smaller_than_launch) + 1 ==
              kNames.size());

}  // namespace

std::string_view engine_error_name(EngineErrorId id) {
  return kNames[static_cast<std::size_t>(id)];
}

EngineError::EngineError(EngineErrorId id, const std::string& text)
    : UsageError(fmt::format("{}: {}", engine_error_name(id), text)), id_(id) {}

}  // namespace zeroproof
