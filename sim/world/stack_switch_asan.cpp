// The twin of stack_switch.cpp for AddressSanitizer, which else takes a frame of one stack for one
// of another when an exception unwinds it.
#include <sanitizer/common_interface_defs.h>

#include "sim/world/stack_switch.h"

namespace zeroproof::sim {

void announce_stack(StackPlace&) {}

void withdraw_stack(StackPlace&) {}

void* before_switch(const StackPlace& next, bool ends) {
  void* of_this_stack = nullptr;
  __sanitizer_start_switch_fiber(ends ? nullptr : &of_this_stack, next.bottom, next.bytes);
  return of_this_stack;
}

StackPlace after_switch(void* of_this_stack) {
  StackPlace before;
  __sanitizer_finish_switch_fiber(of_this_stack, &before.bottom, &before.bytes);
  return before;
}

}  // namespace zeroproof::sim
