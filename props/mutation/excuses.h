#pragma once

#include <string_view>

#include "props/train/case_spec.h"

namespace zeroproof::mutation {

// Whether the property of that number ("P42") does not speak about such a program: what it says of
// one is no finding.
bool is_excused(const train::CaseSpec& spec, std::string_view number);

}  // namespace zeroproof::mutation
