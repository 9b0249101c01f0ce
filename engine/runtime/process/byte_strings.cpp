#include "engine/runtime/process/byte_strings.h"

namespace zeroproof {
namespace {

void append_length(std::string& to, std::uint64_t length) {
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    to.push_back(static_cast<char>((length >> (8 * i)) & 0xffU));
}

}  // namespace

std::uint64_t length_at(std::string_view packed) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::uint64_t{static_cast<unsigned char>(packed[i])} << (8 * i);
  return length;
}

std::string pack(const std::vector<std::string>& parts) {
  std::size_t bytes = 0;
  for (const std::string& part : parts) bytes += kLengthBytes + part.size();
  std::string packed;
  packed.reserve(bytes);
  for (const std::string& part : parts) {
    append_length(packed, part.size());
    packed += part;
  }
  return packed;
}

std::optional<std::vector<std::string>> unpack(std::string_view packed) {
  std::vector<std::string> parts;
  while (!packed.empty()) {
    if (packed.size() < kLengthBytes) return std::nullopt;
    const std::uint64_t length = length_at(packed);
    packed.remove_prefix(kLengthBytes);
    if (packed.size() < length) return std::nullopt;
    parts.emplace_back(packed.substr(0, length));
    packed.remove_prefix(length);
  }
  return parts;
}

}  // namespace zeroproof
