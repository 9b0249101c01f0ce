#pragma once

#include <span>

#include "zeroproof/props/property.h"

namespace zeroproof {

// What two runs of one engine owe each other where their programs have to train alike: MR1 and so
// on, beside P33 to P37 of all_properties(), which are relations, too. Static.
std::span<const Property> relation_properties();

}  // namespace zeroproof
