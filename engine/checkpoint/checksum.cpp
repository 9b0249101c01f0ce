#include "engine/checkpoint/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace zeroproof {

std::string checksum_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string sealed(std::string_view line) {
  return fmt::format("{}\n{{\"xxh3_128\":\"{}\"}}\n", line, checksum_of(line));
}

bool unseal(std::string_view text, std::string_view& line) {
  line = text.substr(0, text.find('\n'));
  return text == sealed(line);
}

}  // namespace zeroproof
