#include "model/order_count.h"

#include <algorithm>

namespace zeroproof {
namespace {

__extension__ using Wide = unsigned __int128;

std::string decimal(Wide value) {
  std::string digits;
  do {
    digits.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

OrderCount& OrderCount::operator+=(OrderCount other) {
  Wide sum = 0;
  if (has_overflowed_ || other.has_overflowed_ ||
      __builtin_add_overflow(value_, other.value_, &sum)) {
    return *this = overflowed();
  }
  value_ = sum;
  return *this;
}

OrderCount& OrderCount::operator*=(OrderCount other) {
  Wide product = 0;
  if (has_overflowed_ || other.has_overflowed_ ||
      __builtin_mul_overflow(value_, other.value_, &product)) {
    return *this = overflowed();
  }
  value_ = product;
  return *this;
}

std::string OrderCount::text() const {
  if (has_overflowed_) return "more than " + decimal(~Wide{0});
  return decimal(value_);
}

}  // namespace zeroproof
