#pragma once

#include <span>
#include <string_view>

#include "zeroproof/props/property.h"

namespace zeroproof {

// What every run of an engine owes whatever its program is: liveness, memory, equality with the
// unsharded baseline beyond gradients, cost. Numbered R1 and so on, beside P1 to P87 of
// all_properties(). Static.
std::span<const Property> run_properties();

// Of all_properties(), these and relation_properties(), by id or number; null when there is none.
const Property* find_any_property(std::string_view id_or_number);

}  // namespace zeroproof
