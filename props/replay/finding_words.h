#pragma once

#include <string_view>

#include "zeroproof/props/property.h"

namespace zeroproof {

// What a falsified property is called among the diagnoses, and what to look at.
struct FindingWords {
  std::string_view number;  // "P28"
  std::string_view kind;    // "gradients.overwritten"
  std::string_view look_at;
};

// Null for a property that has no words of its own.
const FindingWords* finding_words(const Property& property);

}  // namespace zeroproof
