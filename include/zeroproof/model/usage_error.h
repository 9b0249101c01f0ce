#pragma once

#include <stdexcept>
#include <string>

namespace zeroproof {

// A call that its caller could have known to be wrong: a value, an order of calls, an object of
// another engine. `what()` says what was given and what to do. EngineError and AutogradError are
// usage errors that follow a rule of upstream.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throw UsageError unless `is_met`. A text that is made is made either way: for rare calls.
inline void require(bool is_met, const char* text) {
  if (!is_met) [[unlikely]]
    throw UsageError(text);
}
inline void require(bool is_met, const std::string& text) {
  if (!is_met) throw UsageError(text);
}

}  // namespace zeroproof
