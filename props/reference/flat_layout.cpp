#include "props/reference/flat_layout.h"

#include <algorithm>

namespace zeroproof::reference {
namespace {

constexpr std::int64_t kAlignment = 2;  // elements at which each slice begins

}  // namespace

FlatLayout::FlatLayout(const World& world, int group, int ranks) : ranks_(ranks) {
  for (std::size_t id = 0; id < world.parameters.size(); ++id) {
    const Parameter& row = world.parameters[id];
    if (row.group != group) continue;
    places_.push_back({.parameter = id, .begin = elements_, .elements = row.elements});
    elements_ += row.elements;
  }
  const std::int64_t unit = kAlignment * ranks;
  padded_ = (elements_ + unit - 1) / unit * unit;
}

std::int64_t FlatLayout::owners(std::size_t parameter) const {
  const auto at = std::ranges::find(places_, parameter, &Place::parameter);
  if (at == places_.end() || at->elements == 0) return 0;
  const std::int64_t first = at->begin / slice();
  const std::int64_t last = (at->begin + at->elements - 1) / slice();
  return last - first + 1;
}

}  // namespace zeroproof::reference
