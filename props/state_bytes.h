#pragma once

#include <cstdint>
#include <string>

#include "model/backward_state.h"

namespace zeroproof {

// Appends to the bytes an explorer fingerprints. Every call appends a fixed number of bytes, so
// that lists stay unambiguous when their length is appended first.
inline void append_value(std::string& bytes, std::int64_t value) {
  for (int shift = 0; shift < 64; shift += 8)
    bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> shift));
}

inline void append_flag(std::string& bytes, bool flag) {
  bytes.push_back(flag ? 1 : 0);
}

// Without the id of the callback's task, which is diagnostic only (zero_semantics 1.2).
inline void append_value(std::string& bytes, const BackwardState& state) {
  append_value(bytes, (std::int64_t{state.remaining_hooks} << 32) | state.post_hooks);
  append_value(bytes, (std::int64_t{state.hooks_fired} << 32) | state.max_expected_hooks);
  append_value(bytes, state.active_depth);
  append_flag(bytes, state.is_backward_seen_this_step);
  append_flag(bytes, state.ran_epilogue_this_backward);
  append_flag(bytes, state.is_callback_queued);
}

}  // namespace zeroproof
