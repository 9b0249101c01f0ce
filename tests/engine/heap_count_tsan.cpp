// The twin of heap_count.cpp for ThreadSanitizer, whose runtime has the operators new itself. It
// counts each malloc, those of operator new among them.
#include <sanitizer/allocator_interface.h>

#include <atomic>

#include "tests/engine/heap_count.h"

namespace zeroproof {
namespace {

std::atomic<std::uint64_t> allocations{0};

void count_allocation(const volatile void*, std::size_t) {
  allocations.fetch_add(1, std::memory_order_relaxed);
}

void ignore_free(const volatile void*) {}

[[maybe_unused]] const int kHooks =
    __sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free);

}  // namespace

std::uint64_t heap_allocations() {
  return allocations.load();
}

}  // namespace zeroproof
