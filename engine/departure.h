#pragma once

#include <cstdint>
#include <string_view>

namespace zeroproof {

// One planted departure from right behaviour, by its id in the bug catalogue: "B01", or "F18b" for
// the second of a pair of opposite ones. The engine asks for it by name at the one place where the
// behaviour differs; an engine without one behaves right everywhere. Plain data.
class Departure {
 public:
  constexpr Departure() = default;  // none
  // None for a text that is no such id.
  static constexpr Departure of(std::string_view id) {
    const bool has_variant = id.size() == 4 && id[3] >= 'a' && id[3] <= 'd';
    const bool is_id = (id.size() == 3 || has_variant) && id[0] >= 'A' && id[0] <= 'Z' &&
                       id[1] >= '0' && id[1] <= '9' && id[2] >= '0' && id[2] <= '9';
    if (!is_id) return {};
    Departure departure;
    const int number = (id[1] - '0') * 10 + (id[2] - '0');
    const int variant = has_variant ? id[3] - 'a' + 1 : 0;
    departure.code_ = static_cast<std::uint16_t>(((id[0] - 'A' + 1) * 100 + number) * 8 + variant);
    return departure;
  }

  constexpr bool is_none() const { return code_ == 0; }
  friend constexpr bool operator==(const Departure&, const Departure&) = default;

 private:
  std::uint16_t code_ = 0;
};

// "B01"_bug; does not compile for anything else.
consteval Departure operator""_bug(const char* text, std::size_t length) {
  const Departure departure = Departure::of({text, length});
  if (departure.is_none()) throw "not an id of the bug catalogue";
  return departure;
}

}  // namespace zeroproof
