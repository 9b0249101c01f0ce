#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// Several byte strings in one, and back: what a message is made of. The numbers in it are
// little-endian on every machine.
std::string pack(const std::vector<std::string>& parts);
std::optional<std::vector<std::string>> unpack(std::string_view packed);  // none: not of pack()

// pack() of one part begins with its length, in so many bytes.
inline constexpr std::size_t kLengthBytes = 8;
std::uint64_t length_at(std::string_view packed);

}  // namespace zeroproof
