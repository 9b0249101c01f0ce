#pragma once

#include <chrono>
#include <functional>
#include <vector>

namespace zeroproof {

// Runs all at once, each on a thread of its own, and waits for them, but no longer than that.
// False: some have not ended; their threads go on with what they hold: each work owns what it uses.
bool run_within(std::vector<std::function<void()>> works, std::chrono::milliseconds at_most);

}  // namespace zeroproof
