#pragma once

#include <cstddef>

namespace zeroproof::sim {

// Where a stack lies; `bottom` is its lowest address.
struct StackPlace {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

// Announces that a thread goes on with another stack, for AddressSanitizer, which keeps shadow
// frames by stack. Its twin is stack_switch_asan.cpp; without a sanitizer these functions are
// empty.

// Before the switch. Returns what after_switch() takes when this stack goes on; a stack that `ends`
// never does.
void* before_switch(const StackPlace& next, bool ends);
// After the switch, on the stack that goes on (null where it begins). Returns the one before.
StackPlace after_switch(void* of_this_stack);

}  // namespace zeroproof::sim
