#pragma once

#include <cstdint>

namespace zeroproof::train {

// Documents whose meaning is known without reading them by the engine: pairs that say the same,
// ones that are refused and where, and sizes of batches that follow from each other.

// In so many parts they are read, each of which is about as long.
inline constexpr int kReadingParts = 4;

// Whether everything in that part, counted from 1, is read as it must be.
bool reads_all_of(int part);

}  // namespace zeroproof::train
