#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace zeroproof {

// A path in the temporary folder that no other test process uses: ctest runs each test in its own
// process, several at a time.
inline std::string scratch_path(std::string_view name) {
  return ::testing::TempDir() + "zp-" + std::to_string(::getpid()) + "-" + std::string(name);
}

}  // namespace zeroproof
