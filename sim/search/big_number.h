#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// A natural number of any size: mixed-radix codes of schedules, written in base64url.
class BigNumber {
 public:
  __extension__ using Wide = unsigned __int128;

  BigNumber() = default;
  explicit BigNumber(Wide value);

  // No value for a character that is no digit, or more than 64 Ki digits. Empty text is 0.
  static std::optional<BigNumber> from_base64(std::string_view digits);
  std::string base64() const;  // most significant first; empty for 0

  void multiply_add(std::uint32_t factor, std::uint32_t addend);
  // Divides by `by`, which is not 0; the remainder.
  std::uint32_t divide(std::uint32_t by);

  bool is_zero() const { return words_.empty(); }
  std::optional<Wide> wide() const;  // no value from 2^128 on

 private:
  std::vector<std::uint32_t> words_;  // the lowest first, the last one is not 0
};

}  // namespace zeroproof
