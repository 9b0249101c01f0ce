#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "zeroproof/internal/model/choice.h"

namespace zeroproof {

// XXH3-128 of the bytes: the same on every machine and compiler. Not for security.
Fingerprint fingerprint_of(std::string_view bytes);

// Collects what decides the future of a world and hashes it. Every value is self-delimiting, so
// that {"a", "bc"} and {"ab", "c"} differ. Append in one fixed order; sort sets and maps first.
class StateBytes {
 public:
  StateBytes& add(std::integral auto value) { return add_word(static_cast<std::uint64_t>(value)); }
  StateBytes& add(std::string_view text);

  // For code that appends bytes of its own: add_from([&](std::string& b) { p.append_state(b); }).
  template <class Append>
  StateBytes& add_from(Append append) {
    const std::size_t start = bytes_.size();
    add_word(0);
    append(bytes_);
    set_length(start);
    return *this;
  }

  void clear() { bytes_.clear(); }
  std::string_view bytes() const { return bytes_; }
  Fingerprint fingerprint() const { return fingerprint_of(bytes_); }

 private:
  StateBytes& add_word(std::uint64_t word);
  void set_length(std::size_t start);

  std::string bytes_;
};

}  // namespace zeroproof
