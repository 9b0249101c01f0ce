#include "engine/checkpoint/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace zeroproof {
namespace {

std::string text_of(const XXH128_hash_t& hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

struct RunningChecksum::State {
  std::unique_ptr<XXH3_state_t, FreeState> hash{XXH3_createState()};
};

RunningChecksum::RunningChecksum() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->hash.get());
}
RunningChecksum::~RunningChecksum() = default;
RunningChecksum::RunningChecksum(RunningChecksum&& other) noexcept = default;
RunningChecksum& RunningChecksum::operator=(RunningChecksum&& other) noexcept = default;

void RunningChecksum::add(std::string_view bytes) {
  XXH3_128bits_update(state_->hash.get(), bytes.data(), bytes.size());
}

std::string RunningChecksum::text() const {
  return text_of(XXH3_128bits_digest(state_->hash.get()));
}

std::string checksum_of(std::string_view bytes) {
  return text_of(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string sealed(std::string_view line) {
  return fmt::format("{}\n{{\"xxh3_128\":\"{}\"}}\n", line, checksum_of(line));
}

bool unseal(std::string_view text, std::string_view& line) {
  line = text.substr(0, text.find('\n'));
  return text == sealed(line);
}

}  // namespace zeroproof
