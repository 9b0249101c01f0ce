#pragma once

#include <cstdint>

namespace zeroproof {

// Calls of operator new by this test binary so far, on all threads.
std::uint64_t heap_allocations();

}  // namespace zeroproof
