#pragma once

#include <string>
#include <type_traits>

#include "zeroproof/model/backward_state.h"

namespace zeroproof {

// Appends a value's bytes in a fixed order, so that equal states give equal strings. Fingerprints
// are compared within one machine, so the byte order does not matter.
template <class T>
requires std::is_arithmetic_v<T>
void append_bytes(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void append_bytes(std::string& bytes, const BackwardState& state) {
  append_bytes(bytes, state.remaining_hooks);
  append_bytes(bytes, state.post_hooks);
  append_bytes(bytes, state.active_depth);
  append_bytes(bytes, state.is_backward_seen_this_step);
  append_bytes(bytes, state.ran_epilogue_this_backward);
  append_bytes(bytes, state.hooks_fired);
  append_bytes(bytes, state.max_expected_hooks);
  append_bytes(bytes, state.is_callback_queued);
  append_bytes(bytes, state.callback_graph_task.value);
}

}  // namespace zeroproof
