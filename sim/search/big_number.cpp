#include "sim/search/big_number.h"

#include <algorithm>

namespace zeroproof {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kDigitsMax = std::size_t{1} << 16;

}  // namespace

BigNumber::BigNumber(Wide value) {
  for (; value != 0; value >>= 32) words_.push_back(static_cast<std::uint32_t>(value));
}

std::optional<BigNumber> BigNumber::from_base64(std::string_view digits) {
  BigNumber number;
  if (digits.size() > kDigitsMax) return std::nullopt;
  for (const char digit : digits) {
    const std::size_t value = kDigits.find(digit);
    if (value == kDigits.npos) return std::nullopt;
    number.multiply_add(64, static_cast<std::uint32_t>(value));
  }
  return number;
}

std::string BigNumber::base64() const {
  BigNumber rest = *this;
  std::string digits;
  while (!rest.is_zero()) digits.push_back(kDigits[rest.divide(64)]);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

void BigNumber::multiply_add(std::uint32_t factor, std::uint32_t addend) {
  std::uint64_t carry = addend;
  for (std::uint32_t& word : words_) {
    carry += std::uint64_t{word} * factor;
    word = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  if (carry != 0) words_.push_back(static_cast<std::uint32_t>(carry));
}

std::uint32_t BigNumber::divide(std::uint32_t by) {
  std::uint64_t rest = 0;
  for (std::size_t i = words_.size(); i-- > 0;) {
    rest = rest << 32 | words_[i];
    words_[i] = static_cast<std::uint32_t>(rest / by);
    rest %= by;
  }
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
  return static_cast<std::uint32_t>(rest);
}

std::optional<BigNumber::Wide> BigNumber::wide() const {
  if (words_.size() > 4) return std::nullopt;
  Wide value = 0;
  for (std::size_t i = words_.size(); i-- > 0;) value = value << 32 | words_[i];
  return value;
}

}  // namespace zeroproof
