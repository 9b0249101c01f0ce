#include "zeroproof/props/added_property.h"

#include <algorithm>
#include <vector>

namespace zeroproof {
namespace {

// A function-local static: the first object of any file that registers a property makes it.
std::vector<AddedEntry>& added() {
  static std::vector<AddedEntry> all;
  return all;
}

}  // namespace

AddedProperty::AddedProperty(const Property& property, MonitorFactory factory) {
  const auto place = std::ranges::lower_bound(
      added(), property.id, {}, [](const AddedEntry& entry) { return entry.property.id; });
  added().insert(place, {property, factory});
}

std::span<const AddedEntry> added_properties() {
  return added();
}

}  // namespace zeroproof
