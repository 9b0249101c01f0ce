#pragma once

#include <cstdint>
#include <string_view>

namespace zeroproof {

// FNV-1a of 64 bits (Fowler, Noll and Vo): the same on every machine. Not against forgery.
inline std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return hash;
}

}  // namespace zeroproof
