#pragma once

#include <string_view>

#include "sim/trace/json_line.h"

namespace zeroproof {

// Reads a JSON number exactly: kind integer when it is written as one and fits 64 bits, else
// kind number with the nearest double, which is infinite beyond its range. False, with `out`
// unchanged, when `text` is no JSON number.
bool read_json_number(std::string_view text, JsonLineValue& out);

}  // namespace zeroproof
