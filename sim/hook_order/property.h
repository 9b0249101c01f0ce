#pragma once

#include <cstdint>
#include <string_view>

namespace zeroproof::hook_order {

// What has to hold in every order. A1 to A5 are the common model's (docs/spec/explorer.md 1.1).
enum class Property : std::uint8_t {
  none,
  a1,  // the epilogue runs exactly once in each backward
  a2,  // no hook after it
  a3,  // every bucket is reduced when it returns, and not used before
  a4,  // the j-th collective is the same on all ranks
  a5,  // no rank hangs
  a6,  // the window has each rank's contribution to each element exactly once a backward
  a7,  // a backward that is given up leaves no state
  a8,  // the engine refuses no call
};
inline constexpr std::size_t kProperties = 9;

// Plain data.
class PropertySet {
 public:
  bool is_empty() const { return bits_ == 0; }
  bool has(Property property) const { return (bits_ >> static_cast<int>(property) & 1) != 0; }
  void add(Property property) { bits_ |= 1U << static_cast<int>(property); }
  // Those that `before` has not.
  PropertySet since(PropertySet before) const {
    PropertySet fresh;
    fresh.bits_ = bits_ & ~before.bits_;
    return fresh;
  }
  std::uint32_t bits() const { return bits_; }
  friend bool operator==(PropertySet, PropertySet) = default;

 private:
  std::uint32_t bits_ = 0;
};

std::string_view property_name(Property property);       // "A1", ...
std::string_view property_statement(Property property);  // one sentence

}  // namespace zeroproof::hook_order
