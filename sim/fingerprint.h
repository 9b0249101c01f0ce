#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/choice.h"

namespace zeroproof {

// XXH3-128 of the bytes: the same on every machine and compiler. Not for security.
Fingerprint fingerprint_of(std::string_view bytes);

// Collects what decides the future of a world and hashes it. Every value is self-delimiting, so
// that {"a", "bc"} and {"ab", "c"} differ. Append in one fixed order; sort sets and maps first.
class StateBytes {
 public:
  StateBytes& add(std::int64_t value);
  StateBytes& add(bool value) { return add(std::int64_t{value ? 1 : 0}); }
  StateBytes& add(std::string_view text);
  StateBytes& add(const char* text) { return add(std::string_view(text)); }

  // For code that appends its own bytes (HookPolicy::append_state): call end_raw() afterwards.
  std::string& raw() { return bytes_; }
  void end_raw(std::size_t size_before);

  void clear() { bytes_.clear(); }
  std::string_view bytes() const { return bytes_; }
  Fingerprint fingerprint() const { return fingerprint_of(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace zeroproof
