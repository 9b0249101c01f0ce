// The twin of stack_switch.cpp for ThreadSanitizer, which else takes the calls of two stacks for
// one sequence. A switch orders what both stacks do, as one thread does.
#include <sanitizer/tsan_interface.h>

#include "sim/world/stack_switch.h"

namespace zeroproof::sim {
namespace {

thread_local void* fiber_before = nullptr;  // which this thread switched away from last

}  // namespace

void announce_stack(StackPlace& stack) {
  stack.tsan_fiber = __tsan_create_fiber(0);
}

void withdraw_stack(StackPlace& stack) {
  __tsan_destroy_fiber(stack.tsan_fiber);
  stack.tsan_fiber = nullptr;
}

void* before_switch(const StackPlace& next, bool) {
  fiber_before = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(next.tsan_fiber, 0);
  return nullptr;
}

StackPlace after_switch(void*) {
  return {.tsan_fiber = fiber_before};
}

}  // namespace zeroproof::sim
