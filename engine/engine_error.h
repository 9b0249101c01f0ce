#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/usage_error.h"

namespace zeroproof {

// The misuses that the engine refuses: zero_semantics 2.20 (E) and 3.14 (F).
enum class EngineErrorId : std::uint8_t {
  e1,
  e2,
  e3,
  e4,
  e5,
  e6,
  e7,
  e8,
  e9,
  e10,
  e11,
  e12,
  e13,
  e14,
  e15,
  e16,
  e17,
  e18,
  e19,
  e20,
  e21,
  e22,
  e23,
  e24,
  e25,
  e26,
  f1,
  f2,
  f3,
  f4,
  f5,
  f6,
  f7,
  f8,
  f9,
  f10,
};

std::string_view engine_error_name(EngineErrorId id);  // "E1"; static

// Thrown where upstream raises. `what()` begins with the name, then says what was done, with which
// value, and what to do instead.
class EngineError : public UsageError {
 public:
  EngineError(EngineErrorId id, const std::string& text);
  EngineErrorId id() const { return id_; }

 private:
  EngineErrorId id_;
};

}  // namespace zeroproof
