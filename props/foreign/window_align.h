#pragma once

#include <cstdint>
#include <optional>

#include "props/foreign/collective_group.h"

namespace zeroproof {

// By how much `window` begins after `reference` in the same sequence of collectives: where one
// shift lets all that both have mean the same, the one with the longest common part. nullopt: no
// shift does.
std::optional<std::int64_t> window_shift(const GroupView& reference, const GroupView& window,
                                         std::size_t group_size);

}  // namespace zeroproof
