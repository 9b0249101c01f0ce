#pragma once

#include <cstddef>

namespace zeroproof::sim {

// Where a stack lies; `bottom` is its lowest address.
struct StackPlace {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* tsan_fiber = nullptr;  // what ThreadSanitizer keeps of this stack
};

// Announces that a thread goes on with another stack, for AddressSanitizer, which keeps shadow
// frames by stack, and for ThreadSanitizer, which keeps calls and clocks by stack. Their twins are
// stack_switch_asan.cpp and stack_switch_tsan.cpp; without a sanitizer these functions are empty.

// Once for each new stack, and before its memory goes.
void announce_stack(StackPlace& stack);
void withdraw_stack(StackPlace& stack);
// Before the switch. Returns what after_switch() takes when this stack goes on; a stack that `ends`
// never does.
void* before_switch(const StackPlace& next, bool ends);
// After the switch, on the stack that goes on (null where it begins). Returns the one before.
StackPlace after_switch(void* of_this_stack);

}  // namespace zeroproof::sim
