#pragma once

#include <memory>

#include "props/monitor.h"

namespace zeroproof {

// One factory a property; registry.cpp pairs them with the catalogue.
using MonitorFactory = std::unique_ptr<Monitor> (*)(const Monitor::Context&);

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

}  // namespace zeroproof
