#include "engine/upstream_rules.h"

namespace zeroproof {

UpstreamRules upstream_rules(const Quirks& quirks) {
  const auto has = [&](Quirk quirk) { return quirks.has(quirk); };
  return {
      .abort_leaks_state = has(Quirk::h1_abort_leaks_state),
      .callback_once_per_forward = has(Quirk::h2_callback_once_per_forward),
      .micro_step_counts_forwards = has(Quirk::h3_micro_step_counts_forwards),
      .boundary_overwrites_average = has(Quirk::h4_boundary_overwrites_average),
      .stage0_fp16_loss_unscaled = has(Quirk::h5_stage0_fp16_loss_unscaled),
      .unscale_with_updated_scale = has(Quirk::h6_unscale_with_updated_scale),
      .autocast_clips_scaled = has(Quirk::h7_autocast_clips_scaled),
      .divides_at_outputs = has(Quirk::h8_divides_at_outputs),
      .static_scale_needs_no_scaler = has(Quirk::h9_static_scale_needs_no_scaler),
      .stale_boundary_before_prologue = has(Quirk::h10_stale_boundary_before_prologue),
      .module_stack_leaks = has(Quirk::h11_module_stack_leaks),
      .ignores_container_outputs = has(Quirk::h12_ignores_container_outputs),
      .param_once_per_backward = has(Quirk::h13_param_once_per_backward),
      .overlap_boundary_hooks_only = has(Quirk::h14_overlap_boundary_hooks_only),
      .offload_never_cleared = has(Quirk::h15_offload_never_cleared),
      .partition_never_cleared = has(Quirk::h16_partition_never_cleared),
      .release_memo_forever = has(Quirk::h17_release_memo_forever),
      .no_sequence_correction = has(Quirk::h18_no_sequence_correction),
      .reuse_waits_current_stream = has(Quirk::h19_reuse_waits_current_stream),
      .any_forward_resets_step = has(Quirk::h20_any_forward_resets_step),
      .offload_copies_boundary_only = has(Quirk::h21_offload_copies_boundary_only),
      .explicit_epilogue_without_prologue = has(Quirk::h22_explicit_epilogue_without_prologue),
      .stale_callback_flag_retained = has(Quirk::h23_stale_callback_flag_retained),
      .leaf_bucketed_per_backward = has(Quirk::h24_leaf_bucketed_per_backward),
      .counts_idle_leaf_modules = has(Quirk::h25_counts_idle_leaf_modules),
      .hooks_before_prologue_recounted = has(Quirk::h26_hooks_before_prologue_recounted),
      .overflow_keeps_scale = has(Quirk::n4_overflow_keeps_scale),
      .zero_grad_keeps_partition = has(Quirk::n5_zero_grad_keeps_partition),
      .divides_by_running_engine = has(Quirk::n6_divides_by_running_engine),
      .unmanaged_offload_repeats = has(Quirk::n8_unmanaged_offload_repeats),
      .all = quirks.is_upstream(),
      .none = quirks.is_empty(),
  };
}

}  // namespace zeroproof
