#include "sim/fingerprint.h"

#include <xxhash.h>

#include <array>

namespace zeroproof {
namespace {

// Little-endian on every machine, so that fingerprints can be compared between them.
std::array<char, 8> little_endian(std::uint64_t word) {
  std::array<char, 8> bytes;
  for (char& byte : bytes) {
    byte = static_cast<char>(word & 0xff);
    word >>= 8;
  }
  return bytes;
}

}  // namespace

Fingerprint fingerprint_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

StateBytes& StateBytes::add(std::string_view text) {
  add_word(text.size());
  bytes_.append(text);
  return *this;
}

StateBytes& StateBytes::add_word(std::uint64_t word) {
  const std::array<char, 8> bytes = little_endian(word);
  bytes_.append(bytes.data(), bytes.size());
  return *this;
}

void StateBytes::set_length(std::size_t start) {
  const std::array<char, 8> bytes = little_endian(bytes_.size() - start - 8);
  bytes_.replace(start, bytes.size(), bytes.data(), bytes.size());
}

}  // namespace zeroproof
