#pragma once

#include <stdexcept>
#include <string>

namespace zeroproof {

// A broken invariant of ours, never a user's mistake. Thrown, so that RapidCheck can shrink the
// case and the command can leave with exit code 6 after writing what it has.
class CheckFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace zeroproof

// Always on, in every build type. `message` is any expression that converts to std::string;
// it is evaluated only on failure.
#define ZP_CHECK(condition, message)                                        \
  do {                                                                      \
    if (!(condition)) [[unlikely]]                                          \
      ::zeroproof::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
