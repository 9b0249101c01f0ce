#pragma once

#include "zeroproof/engine/quirks.h"

namespace zeroproof {

// What the engine does as upstream does it, read from the quirks once: all false is right. Each
// field is the quirk of that name (zeroproof/engine/quirks.h says what it does). Plain data.
struct UpstreamRules {
  bool abort_leaks_state = false;                   // H1
  bool callback_once_per_forward = false;           // H2
  bool micro_step_counts_forwards = false;          // H3
  bool boundary_overwrites_average = false;         // H4
  bool stage0_fp16_loss_unscaled = false;           // H5
  bool unscale_with_updated_scale = false;          // H6
  bool autocast_clips_scaled = false;               // H7
  bool divides_at_outputs = false;                  // H8
  bool static_scale_needs_no_scaler = false;        // H9
  bool stale_boundary_before_prologue = false;      // H10
  bool module_stack_leaks = false;                  // H11
  bool ignores_container_outputs = false;           // H12
  bool param_once_per_backward = false;             // H13
  bool overlap_boundary_hooks_only = false;         // H14
  bool offload_never_cleared = false;               // H15
  bool partition_never_cleared = false;             // H16
  bool release_memo_forever = false;                // H17
  bool no_sequence_correction = false;              // H18
  bool reuse_waits_current_stream = false;          // H19
  bool any_forward_resets_step = false;             // H20
  bool offload_copies_boundary_only = false;        // H21
  bool explicit_epilogue_without_prologue = false;  // H22
  bool stale_callback_flag_retained = false;        // H23
  bool leaf_bucketed_per_backward = false;          // H24
  bool counts_idle_leaf_modules = false;            // H25
  bool hooks_before_prologue_recounted = false;     // H26
  bool overflow_keeps_scale = false;                // N4
  bool zero_grad_keeps_partition = false;           // N5
  bool divides_by_running_engine = false;           // N6
  bool unmanaged_offload_repeats = false;           // N8

  bool all = false;  // every hazard: then also upstream's ways that are no hazard
  bool none = true;  // no hazard at all
};

UpstreamRules upstream_rules(const Quirks& quirks);

}  // namespace zeroproof
