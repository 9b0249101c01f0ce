#pragma once

#include <cstdint>
#include <vector>

namespace zeroproof {

// The set of states met, one bit a code: exact, and the smallest store there is when a good part
// of the codes can be reached. Workers may insert at the same time where their codes never share
// a byte, that is eight codes from a multiple of eight on.
class CodeBitmap {
 public:
  static constexpr std::uint64_t kCodesTogether = 8;

  explicit CodeBitmap(std::uint64_t codes) : bytes_(codes / kCodesTogether + 1) {}

  void prefetch(std::uint64_t code) const { __builtin_prefetch(&bytes_[code >> 3], 1); }

  // True when the code was not there.
  bool insert(std::uint64_t code) {
    std::uint8_t& byte = bytes_[code >> 3];
    const auto bit = static_cast<std::uint8_t>(1U << (code & 7));
    const bool is_new = (byte & bit) == 0;
    byte |= bit;
    return is_new;
  }
  bool contains(std::uint64_t code) const { return (bytes_[code >> 3] >> (code & 7) & 1) != 0; }

  std::uint64_t bytes() const { return bytes_.size(); }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace zeroproof
