#include "props/foreign/window_align.h"

#include <algorithm>

#include "props/foreign/flight_match.h"

namespace zeroproof {
namespace {

// Windows of a profiler are cut within a step or so; looking further finds repetitions.
constexpr std::int64_t kShiftMax = 256;

std::int64_t length(const GroupView& view) {
  return static_cast<std::int64_t>(view.issued.size());
}

bool agrees(const GroupView& reference, const GroupView& window, std::int64_t shift,
            std::size_t group_size) {
  const std::int64_t begin = std::max<std::int64_t>(shift, 0);
  const std::int64_t end = std::min(length(reference), length(window) + shift);
  for (std::int64_t at = begin; at < end; ++at) {
    const CollectiveShape* const mine = window.issued[static_cast<std::size_t>(at - shift)]->shape;
    const CollectiveShape* const theirs = reference.issued[static_cast<std::size_t>(at)]->shape;
    if (mine != theirs && !match_shapes(*theirs, *mine, group_size).is_fine()) return false;
  }
  return true;
}

std::int64_t overlap(const GroupView& reference, const GroupView& window, std::int64_t shift) {
  return std::min(length(reference), length(window) + shift) - std::max<std::int64_t>(shift, 0);
}

}  // namespace

std::optional<std::int64_t> window_shift(const GroupView& reference, const GroupView& window,
                                         std::size_t group_size) {
  // Less than three quarters in common may agree by chance.
  const std::int64_t shorter = std::min(length(reference), length(window));
  const std::int64_t least = std::max<std::int64_t>(1, (3 * shorter + 3) / 4);
  std::optional<std::int64_t> best;
  for (std::int64_t distance = 0; distance <= kShiftMax; ++distance) {
    for (const std::int64_t shift : {distance, -distance}) {
      const std::int64_t common = overlap(reference, window, shift);
      if (common < least || (best && common <= overlap(reference, window, *best))) continue;
      if (agrees(reference, window, shift, group_size)) best = shift;
    }
  }
  return best;
}

}  // namespace zeroproof
