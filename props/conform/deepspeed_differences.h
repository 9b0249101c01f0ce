#pragma once

#include <string_view>

namespace zeroproof {

// The text of deepspeed_differences.json, built in.
std::string_view deepspeed_differences_json();

}  // namespace zeroproof
