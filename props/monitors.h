#pragma once

#include <memory>

#include "zeroproof/props/monitor.h"

namespace zeroproof {

// One factory a property; registry.cpp pairs them with the catalogue.

// epilogue_properties.cpp
std::unique_ptr<Monitor> make_epilogue_exactly_once(const Monitor::Context&);      // P1
std::unique_ptr<Monitor> make_epilogue_after_last_hook(const Monitor::Context&);   // P2
std::unique_ptr<Monitor> make_epilogue_outside_forward(const Monitor::Context&);   // P3
std::unique_ptr<Monitor> make_epilogue_explicit_once(const Monitor::Context&);     // P10
std::unique_ptr<Monitor> make_epilogue_in_prologue_task(const Monitor::Context&);  // P17
std::unique_ptr<Monitor> make_epilogue_needs_depth(const Monitor::Context&);       // P18

// manager_properties.cpp
std::unique_ptr<Monitor> make_depth_zero_at_quiet(const Monitor::Context&);      // P4
std::unique_ptr<Monitor> make_fresh_at_first_prologue(const Monitor::Context&);  // P5
std::unique_ptr<Monitor> make_queued_flag_backed(const Monitor::Context&);       // P8
std::unique_ptr<Monitor> make_refresh_before_reenter(const Monitor::Context&);   // P9
std::unique_ptr<Monitor> make_not_running_at_quiet(const Monitor::Context&);     // P12
std::unique_ptr<Monitor> make_engines_kept_apart(const Monitor::Context&);       // P14

// abort_properties.cpp
std::unique_ptr<Monitor> make_no_lost_work(const Monitor::Context&);       // P7
std::unique_ptr<Monitor> make_clean_after_abort(const Monitor::Context&);  // P11

// hook_properties.cpp
std::unique_ptr<Monitor> make_count_once_per_phase(const Monitor::Context&);   // P6
std::unique_ptr<Monitor> make_expected_hooks_fire(const Monitor::Context&);    // P13
std::unique_ptr<Monitor> make_prologue_once(const Monitor::Context&);          // P15
std::unique_ptr<Monitor> make_prologue_before_hooks(const Monitor::Context&);  // P16

// gradient_properties.cpp
std::unique_ptr<Monitor> make_retained_backwards_sum(const Monitor::Context&);     // P28
std::unique_ptr<Monitor> make_outstanding_forwards_sum(const Monitor::Context&);   // P29
std::unique_ptr<Monitor> make_backwards_before_step_sum(const Monitor::Context&);  // P30
std::unique_ptr<Monitor> make_one_flush_per_backward(const Monitor::Context&);     // P42

// module_properties.cpp
std::unique_ptr<Monitor> make_released_at_end(const Monitor::Context&);        // P63
std::unique_ptr<Monitor> make_module_stack_balanced(const Monitor::Context&);  // P74
std::unique_ptr<Monitor> make_transform_inert(const Monitor::Context&);        // P79

// bucket_properties.cpp
std::unique_ptr<Monitor> make_bucket_size_kept(const Monitor::Context&);              // P43
std::unique_ptr<Monitor> make_bucket_holds_one_kind(const Monitor::Context&);         // P44
std::unique_ptr<Monitor> make_buckets_empty_after_epilogue(const Monitor::Context&);  // P49
std::unique_ptr<Monitor> make_zero_sized_inert(const Monitor::Context&);              // P51
std::unique_ptr<Monitor> make_not_ready_never_bucketed(const Monitor::Context&);      // P54
std::unique_ptr<Monitor> make_one_communication_dtype(const Monitor::Context&);       // P86

// coalesce_properties.cpp
std::unique_ptr<Monitor> make_coalesce_reduces_once(const Monitor::Context&);  // P52
std::unique_ptr<Monitor> make_coalesce_at_boundary(const Monitor::Context&);   // P53

// step_properties.cpp
std::unique_ptr<Monitor> make_partition_adds_within_window(const Monitor::Context&);  // P41
std::unique_ptr<Monitor> make_update_at_boundary(const Monitor::Context&);            // P55
std::unique_ptr<Monitor> make_incomplete_step_raises(const Monitor::Context&);        // P56
std::unique_ptr<Monitor> make_zero_grad_begins_window(const Monitor::Context&);       // P60

// scale_properties.cpp
std::unique_ptr<Monitor> make_overflow_updates_nothing(const Monitor::Context&);    // P57
std::unique_ptr<Monitor> make_dynamic_scale_follows_rule(const Monitor::Context&);  // P58
std::unique_ptr<Monitor> make_clipped_norm_bounded(const Monitor::Context&);        // P59

// parameter_properties.cpp
std::unique_ptr<Monitor> make_available_when_used(const Monitor::Context&);    // P62
std::unique_ptr<Monitor> make_persistent_stay(const Monitor::Context&);        // P64
std::unique_ptr<Monitor> make_partitioned_when_free(const Monitor::Context&);  // P65
std::unique_ptr<Monitor> make_registry_is_inflight(const Monitor::Context&);   // P66
std::unique_ptr<Monitor> make_external_stay(const Monitor::Context&);          // P73
std::unique_ptr<Monitor> make_repeated_invocations(const Monitor::Context&);   // P76

// fetch_properties.cpp
std::unique_ptr<Monitor> make_trace_kept(const Monitor::Context&);                  // P68
std::unique_ptr<Monitor> make_prefetch_bounded(const Monitor::Context&);            // P69
std::unique_ptr<Monitor> make_leaf_gradients_once(const Monitor::Context&);         // P70
std::unique_ptr<Monitor> make_leaf_fetched_by_one_thread(const Monitor::Context&);  // P71
std::unique_ptr<Monitor> make_retry_after_recompute(const Monitor::Context&);       // P78

// context_properties.cpp
std::unique_ptr<Monitor> make_user_context_balanced(const Monitor::Context&);   // P72
std::unique_ptr<Monitor> make_linear_keeps_status(const Monitor::Context&);     // P75
std::unique_ptr<Monitor> make_autocast_as_in_forward(const Monitor::Context&);  // P80

// fallback_properties.cpp
std::unique_ptr<Monitor> make_claimed_never_partitioned(const Monitor::Context&);    // P81
std::unique_ptr<Monitor> make_one_owner(const Monitor::Context&);                    // P82
std::unique_ptr<Monitor> make_guards_gather_nothing(const Monitor::Context&);        // P83
std::unique_ptr<Monitor> make_claims_end_with_backward(const Monitor::Context&);     // P84
std::unique_ptr<Monitor> make_partitioned_once_after_both(const Monitor::Context&);  // P85

}  // namespace zeroproof
