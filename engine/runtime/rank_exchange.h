#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace zeroproof {

// Hears now and then how long a rank has waited for the others; may throw, which ends the wait.
using WhileWaiting = std::function<void(std::int64_t waited_ms)>;

// The others are about to come, as they queue the same work; so without giving the processor away.
template <class IsOver>
void wait_until(IsOver is_over, const WhileWaiting& while_waiting) {
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t asked = 0;
  while (!is_over()) {
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    if (waited.count() > asked) while_waiting(waited.count());
    asked = waited.count();
    std::this_thread::yield();
  }
}

// RuntimeFault with the first two, by rank, that differ.
void check_same_calls(const std::vector<std::string>& calls);

}  // namespace zeroproof
