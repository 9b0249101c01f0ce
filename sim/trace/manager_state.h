#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "sim/trace/json_line.h"
#include "sim/trace/parse_result.h"
#include "zeroproof/model/backward_state.h"

namespace zeroproof {

// Reads the attribute object of a bhs.* event at `index`. Attributes of other versions are
// skipped; when one of ours is absent, or `index` is an array, there is no state to compare and
// `out` is empty.
ParseResult parse_manager_state(std::span<const JsonLineValue> values, std::size_t index,
                                std::optional<BackwardState>& out);

// The same object as JSON, in DeepSpeed's attribute order.
void append_manager_state(const BackwardState& state, std::string& json);

}  // namespace zeroproof
