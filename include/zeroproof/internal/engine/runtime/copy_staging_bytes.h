#pragma once

#include <cstdint>

namespace zeroproof {

// Slices of a reduction that are as long are copied before they are summed; the sum itself reads
// shorter ones from the peers' memory.
inline constexpr std::int64_t kCopiedSliceBytesMin = std::int64_t{1} << 20;

// What a GPU keeps for such copies, for each stream that reduces.
inline constexpr std::int64_t kCopyStagingBytes = std::int64_t{48} << 20;

}  // namespace zeroproof
