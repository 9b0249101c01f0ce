#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace zeroproof {

// A number of orders: exact up to 2^128 - 1, and "too many to count" from there on, which no
// later addition undoes. Twelve independent events already have 479,001,600 orders.
class OrderCount {
 public:
  constexpr OrderCount() = default;
  constexpr OrderCount(std::uint64_t value) : value_(value) {}  // NOLINT: it is a number

  static constexpr OrderCount overflowed() {
    OrderCount count;
    count.has_overflowed_ = true;
    return count;
  }

  constexpr bool has_overflowed() const { return has_overflowed_; }

  OrderCount& operator+=(OrderCount other);
  OrderCount& operator*=(OrderCount other);

  // Decimal digits; "more than 340282366920938463463374607431768211455" after an overflow.
  std::string text() const;

  friend constexpr bool operator==(OrderCount, OrderCount) = default;

 private:
  __extension__ using Wide = unsigned __int128;

  Wide value_ = 0;  // 0 after an overflow, so that overflowed counts are equal
  bool has_overflowed_ = false;
};

inline OrderCount operator+(OrderCount left, OrderCount right) {
  return left += right;
}
inline OrderCount operator*(OrderCount left, OrderCount right) {
  return left *= right;
}

}  // namespace zeroproof
